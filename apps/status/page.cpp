// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "status.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/telemetry/human_text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace fourfold::status_program {
namespace {

using batch::RunAttempt;
using batch::RunState;
using batch::RunView;
using telemetry::count_text;
using telemetry::duration_text;
using telemetry::time_text;

/// Foreign text on one line of at most so many characters (0: any number).
std::string shown(std::string text, std::size_t most_characters = 0) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::string clean = printable(text);
  std::size_t characters = 0;
  for (std::size_t at = 0; most_characters > 0 && at < clean.size(); ++characters) {
    if (characters + 3 == most_characters && clean.size() - at > 3) {
      return clean.substr(0, at) + "...";
    }
    at += std::max<std::size_t>(utf8_character_bytes(std::string_view(clean).substr(at)), 1);
  }
  return clean;
}

std::string ago(double unix_s, const RunView& view) {
  return fmt::format("{} ago", duration_text(std::max(view.now_unix_s - unix_s, 0.0)));
}

std::string state_text(const RunView& view) {
  switch (view.verdict.state) {
    case RunState::none:
      return "nothing has started here yet (squeue knows what waits in the queue)";
    case RunState::silent:
      return fmt::format("no word for {}: killed, or stuck?",
                         duration_text(view.now_unix_s - view.verdict.last_word_unix_s));
    case RunState::failed:
    case RunState::stopped:
      return fmt::format("{} (code {})", name(view.verdict.state),
                         view.verdict.code.value_or(ExitCode::internal));
    default:
      return std::string(name(view.verdict.state));
  }
}

/// Beside the state, which is not of that start.
std::string refusal_text(const RunView& view) {
  constexpr std::size_t most_characters = 300;
  if (!view.refused) {
    return {};
  }
  return fmt::format("; last start refused: {} (code {}, job {}, {})",
                     shown(view.refused->reason, most_characters), view.refused->code,
                     shown(view.refused->start.id), ago(view.refused->unix_s, view));
}

std::string hours_text(double hours) {
  return hours < 10 ? fmt::format("{:.3g}", hours) : fmt::format("{:.1f}", hours);
}

std::string step_text(const RunView& view) {
  if (view.steps <= 0) {
    return fmt::format("step {}", view.step);
  }
  const double done = static_cast<double>(view.step) / static_cast<double>(view.steps);
  // Rounded down: 100% are all steps.
  return fmt::format("step {} of {} ({:.1f}%)", view.step, view.steps,
                     std::floor(std::min(done, 1.0) * 1000) / 10);
}

std::string jobs_text(std::int64_t jobs) {
  return jobs == 1 ? "about one more job of this length"
                   : fmt::format("about {} more jobs of this length", count_text(jobs));
}

std::string eta_text(const RunView& view) {
  const batch::Eta& eta = *view.eta;
  std::string more =
      eta.more_jobs.value_or(0) > 0 ? ", needs " + jobs_text(*eta.more_jobs) : std::string();
  if (!eta.in_time) {
    return more;
  }
  const double spare_s = *view.deadline_unix_s - eta.finish_unix_s;
  const std::string at = time_text(eta.finish_unix_s);
  return *eta.in_time
             ? fmt::format(", until {}: {} before the job's end", at, duration_text(spare_s))
             : fmt::format("; the job ends in {}{}",
                           duration_text(std::max(*view.deadline_unix_s - view.now_unix_s, 0.0)),
                           more);
}

std::string loss_text(const RunView& view) {
  std::string text = view.loss ? fmt::format("{:.4f}", *view.loss) : "--";
  if (view.validation_loss) {
    text += fmt::format(", validation {:.4f}", *view.validation_loss);
  }
  if (view.validation_loss && view.validation_step) {
    text += fmt::format(" at step {}", *view.validation_step);
  }
  return text;
}

std::string checkpoint_text(const RunView& view) {
  std::string text = view.checkpoint_step ? fmt::format("step {}", *view.checkpoint_step) : "";
  if (view.checkpoint_unix_s) {
    text += ", " + ago(*view.checkpoint_unix_s, view);
  }
  return view.checkpoint.empty() ? text : fmt::format("{}: {}", text, printable(view.checkpoint));
}

/// Of a chain that trains something else than its user's files say by now.
std::string run_file_text(const RunView& view) {
  if (view.changed.empty() || view.verdict.state == RunState::finished) {
    return {};
  }
  std::vector<std::string> names;
  for (const std::filesystem::path& file : view.changed) {
    names.push_back(printable(file.string()));
  }
  return fmt::format(
      "{} {} changed since: its jobs go on with {}; submit anew to train what {} now",
      fmt::join(names, ", "), names.size() == 1 ? "has" : "have", printable(view.run_file.string()),
      names.size() == 1 ? "it says" : "they say");
}

/// Nodes that are paid for, and on which no rank of the run is.
std::string idle_text(const RunView& view) {
  const RunAttempt* const last = batch::newest_of_run(view.attempts);
  if (last == nullptr || view.verdict.state == RunState::finished) {
    return {};
  }
  std::string text;
  if (last->idle_nodes > 0) {
    text =
        fmt::format("{} of {} idle: no mesh of this run takes all", last->idle_nodes, last->nodes);
  }
  if (!last->idle_with_nodes.empty()) {
    text += fmt::format("{}of those that its jobs ask for, {} leave some idle",
                        text.empty() ? "" : "; ", ranges_text(last->idle_with_nodes));
  }
  return text;
}

/// Whether another job is to go on with a run that can go on.
std::string successor_text(const RunView& view) {
  constexpr std::size_t most_characters = 200;
  const RunAttempt* const last = batch::newest_of_run(view.attempts);
  if (was_next_refused(view)) {
    return "no job of the chain goes on with it: see to why its next one was refused, then submit "
           "it again";
  }
  if (last != nullptr && !last->no_next.empty()) {
    return fmt::format(
        "no job of the chain goes on with it ({}): submit it again, it goes on from the checkpoint",
        shown(last->no_next, most_characters));
  }
  if (last != nullptr && !last->next.empty()) {
    return fmt::format(
        "job {0} of the chain goes on from the checkpoint, if it still waits (squeue --job={0}); "
        "else submit it again",
        shown(last->next));
  }
  return "start it again (a chain does): it goes on from the checkpoint";
}

/// What a person is to do about it.
std::string advice(const RunView& view) {
  const batch::RunVerdict& verdict = view.verdict;
  const RunAttempt* const last = batch::newest_of_run(view.attempts);
  if (verdict.state == RunState::running && last != nullptr && !last->no_next.empty()) {
    return fmt::format("no job of the chain waited when this one began ({})", shown(last->no_next));
  }
  if (verdict.state != RunState::stopped && verdict.state != RunState::failed) {
    return {};
  }
  return view.stop_file  ? "remove STOP, then start it again: it goes on from the checkpoint"
         : verdict.retry ? successor_text(view)
         // A STOP file that is gone.
         : verdict.code == ExitCode::stopped_saved
             ? "start it again: it goes on from the checkpoint"
             : "see to the reason: another start alone gains nothing";
}

std::string files_text(const RunView& view) {
  std::string text;
  for (const auto& [is_there, file] : {std::pair{view.finished_file, "FINISHED"},
                                       {view.stop_file, "STOP"},
                                       {view.save_file, "SAVE"},
                                       {view.hang_file, "hang.json"}}) {
    if (is_there) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", file);
    }
  }
  return text;
}

std::string end_text(const RunAttempt& attempt, bool goes_on) {
  constexpr std::size_t most_characters = 60;
  return attempt.ended ? shown(attempt.reason, most_characters)
         : goes_on     ? "goes on"
                       : "no word of its end";
}

/// The columns of the batch system, where it has started any.
std::string job_columns(const std::string& job, const std::string& restart,
                        const std::string& nodes, bool has_jobs) {
  return has_jobs ? fmt::format("{:<12} {:>7} {:>5}  ", job, restart, nodes) : "";
}

/// "2+1" of the second launch in the third start of a job.
std::string restart_text(const RunAttempt& attempt) {
  return attempt.start.launch == 0
             ? std::to_string(attempt.start.restarts)
             : fmt::format("{}+{}", attempt.start.restarts, attempt.start.launch);
}

std::string attempt_line(const RunAttempt& attempt, bool goes_on, bool has_jobs,
                         const RunView& view) {
  constexpr std::size_t most_characters = 12;
  const double until_s = goes_on ? view.now_unix_s : attempt.until_unix_s;
  return fmt::format(
      "  {}{:<19} {:>7} {:>8} {:>8}  {:>4}  {}",
      job_columns(attempt.start.id.empty() ? "-" : shown(attempt.start.id, most_characters),
                  restart_text(attempt), std::to_string(attempt.nodes), has_jobs),
      time_text(attempt.began_unix_s), duration_text(std::max(until_s - attempt.began_unix_s, 0.0)),
      attempt.from_step, attempt.to_step, attempt.ended ? fmt::format("{}", attempt.code) : "-",
      end_text(attempt, goes_on));
}

void add_attempts(const RunView& view, std::size_t most_attempts, std::vector<std::string>& lines) {
  const std::size_t all = view.attempts.size();
  const std::size_t first = most_attempts == 0 || all <= most_attempts ? 0 : all - most_attempts;
  if (all == 0) {
    return;
  }
  const RunAttempt* const newest = batch::newest_of_run(view.attempts);
  lines.emplace_back("");
  const bool has_jobs = std::any_of(view.attempts.begin(), view.attempts.end(),
                                    [](const RunAttempt& one) { return !one.start.id.empty(); });
  lines.push_back(format_message(
      "  {}{:<19} {:>7} {:>8} {:>8}  {:>4}  {}", job_columns("job", "restart", "nodes", has_jobs),
      "began", "lasted", "from", "to step", "code",
      first == 0 ? "end" : format_message("end ({} earlier ones)", first)));
  for (std::size_t i = first; i < all; ++i) {
    lines.push_back(attempt_line(view.attempts[i],
                                 view.verdict.newest_goes_on && &view.attempts[i] == newest,
                                 has_jobs, view));
  }
}

}  // namespace

std::vector<std::string> page_of(const RunView& view, std::size_t most_attempts) {
  std::vector<std::string> lines;
  const auto row = [&](const char* name, const std::string& text) {
    if (!text.empty()) {
      lines.push_back(format_message("  {:<12} {}", name, text));
    }
  };
  lines.push_back(format_message("{}: {}{}", printable(view.log_dir.string()), state_text(view),
                                 refusal_text(view)));
  row("reason", view.verdict.state == RunState::finished ? "" : shown(view.verdict.reason));
  row("next", advice(view));
  if (view.steps > 0 || view.step > 0) {
    row("progress", step_text(view));
    row("loss", loss_text(view));
  }
  if (view.tokens_per_s && view.step_s) {
    row("speed", fmt::format("{} tokens/s, {} a step{}", count_text(*view.tokens_per_s),
                             duration_text(*view.step_s),
                             view.mfu ? fmt::format(", MFU {:.1f}%", 100 * *view.mfu) : ""));
  }
  if (view.remaining_s) {
    row("remaining", duration_text(*view.remaining_s) + eta_text(view));
  }
  if (view.verdict.last_word_unix_s > 0) {
    row("last word", fmt::format("{}, {}", time_text(view.verdict.last_word_unix_s),
                                 ago(view.verdict.last_word_unix_s, view)));
  }
  row("checkpoint", checkpoint_text(view));
  row("files", files_text(view));
  row("run file", run_file_text(view));
  row("nodes", idle_text(view));
  if (view.node_hours.used > 0) {
    row("node-hours", fmt::format("{}, {} of them lost ({:.1f}%)", hours_text(view.node_hours.used),
                                  hours_text(view.node_hours.lost),
                                  100 * view.node_hours.lost / view.node_hours.used));
  }
  add_attempts(view, most_attempts, lines);
  return lines;
}

std::string line_of(const RunView& view) {
  constexpr std::size_t most_characters = 100;
  std::string line = fmt::format("{}: {}", printable(view.log_dir.string()), state_text(view));
  if (view.steps > 0) {
    line += ", " + step_text(view);
  }
  if (view.loss) {
    line += fmt::format(", loss {:.4f}", *view.loss);
  }
  if (view.tokens_per_s && !is_over(view.verdict.state)) {
    line += fmt::format(", {} tokens/s", count_text(*view.tokens_per_s));
  }
  if (view.remaining_s) {
    line += fmt::format(", {} left", duration_text(*view.remaining_s));
  }
  if (is_over(view.verdict.state) && view.verdict.state != RunState::finished) {
    line += ": " + shown(view.verdict.reason, most_characters);
  }
  line += refusal_text(view);
  return line;
}

}  // namespace fourfold::status_program
