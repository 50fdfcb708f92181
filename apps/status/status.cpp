// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "status.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/batch/run_view.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/own_file.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/program/print.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace fourfold::status_program {
namespace {

/// All that can be looked at; of the others it is said why not. @param code  becomes theirs
std::vector<batch::RunView> views_of(const std::vector<std::string>& runs, ExitCode& code) {
  std::vector<batch::RunView> views;
  for (const std::string& run : runs) {
    try {
      for (const std::filesystem::path& log_dir : runs_in(log_dir_of_run(run))) {
        const bool again = std::ranges::any_of(views, [&](const batch::RunView& view) {
          return whole_path(view.log_dir) == whole_path(log_dir);
        });
        if (!again) {
          views.push_back(batch::RunReader(log_dir).look(unix_time_s()));
        }
      }
    } catch (const UserError& error) {
      if (runs.size() == 1) {
        throw;
      }
      log::warning(error.what());
      code = error.code();
    }
  }
  return views;
}

void print_for_people(const std::vector<batch::RunView>& views, bool brief) {
  for (const batch::RunView& view : views) {
    const std::vector<std::string> lines = brief ? std::vector{line_of(view)} : page_of(view);
    const bool stands_apart = &view != views.data() && !brief;
    program::print("{}{}\n", MadeLines{stands_apart ? "\n" : ""}, fmt::join(lines, "\n"));
  }
}

}  // namespace

ExitCode show(const Request& request) {
  ExitCode code = ExitCode::finished;
  const std::vector<batch::RunView> views = views_of(request.runs, code);
  if (!request.prometheus_file.empty()) {
    io::refuse_place_in_step(request.prometheus_file);
    const auto refuse_foreign = [&] {
      io::refuse_foreign_file(request.prometheus_file,
                              {"# HELP fourfold_run_", "fourfold status --prometheus"});
    };
    refuse_foreign();
    io::AtomicFile file(io::followed(request.prometheus_file));
    file.write(to_prometheus(views));
    file.publish(refuse_foreign);  // what has come there meanwhile
  }
  if (request.json) {
    program::print_text(to_json(views) + "\n");
  } else if (request.prometheus_file.empty()) {
    print_for_people(views, request.brief);
  }
  return code;
}

}  // namespace fourfold::status_program
