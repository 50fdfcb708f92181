// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0

#include "status.hpp"
#include "terminal_page.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/batch/run_view.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/telemetry/human_text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <tuple>

namespace fourfold::status_program {
namespace {

using batch::RunView;

/// Whether no job is to go on with a run that could: there is none, or it has been refused.
bool is_chain_over(const RunView& view) {
  const batch::RunAttempt* const last = batch::newest_of_run(view.attempts);
  return (last != nullptr && !last->no_next.empty()) || was_next_refused(view);
}

/// The code of a run that is over for who watches it.
std::optional<ExitCode> end_of(const RunView& view, bool chain) {
  const batch::RunVerdict& verdict = view.verdict;
  const bool goes_on = !is_over(verdict.state) || (chain && verdict.retry && !is_chain_over(view));
  return goes_on ? std::nullopt : std::optional(verdict.code.value_or(ExitCode::internal));
}

/// As many lines of the job chain as leave room for all the rest.
std::vector<std::string> page_for(const RunView& view, std::size_t rows) {
  const std::size_t all = page_of(view).size();
  const std::size_t others = all - view.attempts.size();
  return all <= rows ? page_of(view)
                     : page_of(view, std::max<std::size_t>(rows > others ? rows - others : 1, 1));
}

ExitCode watch_on_terminal(batch::RunReader& run, double interval_s, bool chain) {
  RunView view;
  {
    TerminalPage page;
    for (;;) {
      view = run.look(unix_time_s());
      if (end_of(view, chain)) {
        break;
      }
      page.draw(page_for(view, TerminalPage::rows()));
      page.wait(interval_s);
    }
  }
  program::print("{}\n", fmt::join(page_of(view), "\n"));
  return *end_of(view, chain);
}

/// What somebody who reads lines wants to be told of.
auto news_of(const RunView& view) {
  return std::tuple(view.verdict.state, view.verdict.code, view.checkpoint_step,
                    view.attempts.size(), view.refused, view.stop_file, view.save_file,
                    view.hang_file);
}

ExitCode watch_by_lines(batch::RunReader& run, double interval_s, bool chain) {
  constexpr double steps_every_s = 60;
  RunView told = run.look(unix_time_s());
  const auto tell = [&](const RunView& view) {
    program::print("{} {}\n", telemetry::time_text(view.now_unix_s), line_of(view));
    std::fflush(stdout);
    told = view;
  };
  tell(told);
  RunView view = told;
  while (!end_of(view, chain)) {
    std::this_thread::sleep_for(std::chrono::duration<double>(interval_s));
    view = run.look(unix_time_s());
    const bool steps_due =
        view.step != told.step && view.now_unix_s - told.now_unix_s >= steps_every_s;
    if (news_of(view) != news_of(told) || steps_due) {
      tell(view);
    }
  }
  return *end_of(view, chain);
}

}  // namespace

ExitCode watch(const std::filesystem::path& log_dir, double interval_s, bool chain) {
  batch::RunReader run(log_dir);
  return TerminalPage::is_possible() ? watch_on_terminal(run, interval_s, chain)
                                     : watch_by_lines(run, interval_s, chain);
}

}  // namespace fourfold::status_program
