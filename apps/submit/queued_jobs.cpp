// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "queued_jobs.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/program/command_output.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <sstream>
#include <string>

namespace fourfold::submit {

void look_for_queued_jobs(const batch::Submission& submission) {
  // What a job was submitted as: for `fourfold submit`, the script in the run's directory.
  const auto squeue = program::output_of(
      {"squeue", "--me", "--noheader", "--name=" + submission.name, "--format=%A %o"});
  if (!squeue || squeue->code != 0) {
    return;
  }
  std::istringstream lines(squeue->text);
  std::string job;
  for (std::string script; lines >> job && std::getline(lines >> std::ws, script);) {
    if (submission.chain > 0 && script == submission.script.string()) {
      throw UserError(ExitCode::config,
                      fmt::format("job {} in the queue is of a chain of this run already, whose "
                                  "script {} would change under it; scancel --name={} ends it",
                                  job, script, submission.name));
    }
    if (std::filesystem::path(script).parent_path() == submission.log_dir) {
      log::warning(fmt::format("job {} of this run is in the queue already", job));
    } else if (submission.chain > 0) {
      throw UserError(
          ExitCode::config,
          fmt::format("job {} in the queue is called {}, too, and is of another run ({}); "
                      "jobs of a chain wait for all that have their name: give --name",
                      job, submission.name, script));
    } else {
      log::warning(fmt::format("job {} in the queue is called {}, too, and is of another run ({})",
                               job, submission.name, script));
    }
  }
}

}  // namespace fourfold::submit
