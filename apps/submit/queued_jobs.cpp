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
#include <vector>

namespace fourfold::submit {
namespace {

struct QueuedJob {
  std::string number;
  std::string script;  ///< what it was submitted as
};

/// The user's; with an option of squeue, those that it leaves. None where it cannot be asked.
std::vector<QueuedJob> queued_jobs(const std::string& option = "--sort=i") {
  const auto squeue =
      program::output_of({"squeue", "--me", "--noheader", "--format=%A %o", option});
  std::vector<QueuedJob> jobs;
  if (!squeue || squeue->code != 0) {
    return jobs;
  }
  std::istringstream lines(squeue->text);
  for (QueuedJob one; lines >> one.number && std::getline(lines >> std::ws, one.script);) {
    jobs.push_back(one);
  }
  return jobs;
}

}  // namespace

void look_for_queued_jobs(const batch::Submission& submission) {
  const auto is_of_run = [&](const QueuedJob& job) {
    return std::filesystem::path(job.script).parent_path() == submission.log_dir;
  };
  for (const QueuedJob& job : queued_jobs()) {
    if (submission.chain > 0 && job.script == submission.script.string()) {
      throw UserError(ExitCode::config,
                      fmt::format("job {} in the queue is of a chain of this run already, whose "
                                  "script {} would change under it; scancel that job and the one "
                                  "behind it to end it",
                                  job.number, job.script));
    }
    if (is_of_run(job)) {
      log::warning(fmt::format("job {} of this run is in the queue already", job.number));
    }
  }
  for (const QueuedJob& job : queued_jobs("--name=" + submission.name)) {
    if (is_of_run(job)) {
      continue;
    }
    const std::string found =
        fmt::format("job {} in the queue is called {}, too, and is of another run ({})", job.number,
                    submission.name, job.script);
    if (submission.chain > 0) {
      throw UserError(ExitCode::config,
                      found + "; jobs of a chain wait for all that have their name: give --name");
    }
    log::warning(found);
  }
}

}  // namespace fourfold::submit
