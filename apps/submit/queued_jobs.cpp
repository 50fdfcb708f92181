// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "queued_jobs.hpp"

#include "slurm_command.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

namespace fourfold::submit {
namespace {

/// The user's; with an option of squeue, those that it leaves. None, and a warning, where it cannot
/// be asked.
std::vector<batch::QueuedJob> queued_jobs(const std::string& option = "--sort=i") {
  const auto squeue =
      ask({"squeue", "--me", "--noheader", std::string("--format=") + batch::queue_format, option});
  if (squeue && squeue->is_answer()) {
    return batch::queued_jobs_of(squeue->text);
  }
  log::warning(format_message("{}; whether a job of this run is in the queue already is not known",
                              squeue ? "squeue " + squeue->failure() : "there is no squeue here"));
  return {};
}

}  // namespace

void look_for_queued_jobs(const batch::Submission& submission) {
  const auto is_of_run = [&](const batch::QueuedJob& job) {
    const auto folder = std::filesystem::path(job.script).parent_path();
    std::error_code failure;  // of a folder that is not there yet, or not any more
    return folder == submission.log_dir ||
           std::filesystem::equivalent(folder, submission.log_dir, failure);  // by a link
  };
  for (const batch::QueuedJob& job : queued_jobs()) {
    const std::string name = std::filesystem::path(job.script).filename();
    if (submission.chain > 0 && is_of_run(job) && name == submission.script.filename()) {
      throw UserError(
          ExitCode::config,
          format_message("job {} in the queue is of a chain of this run already, whose "
                         "script {} would change under it; scancel that job and the one "
                         "behind it to end it",
                         job.number, job.script));
    }
    if (is_of_run(job)) {
      log::warning(format_message("job {} of this run is in the queue already", job.number));
    }
  }
  for (const batch::QueuedJob& job : queued_jobs("--name=" + submission.name)) {
    if (is_of_run(job)) {
      continue;
    }
    const std::string found =
        format_message("job {} in the queue is called {}, too, and is of another run ({})",
                       job.number, submission.name, job.script);
    if (submission.chain > 0) {
      throw UserError(ExitCode::config,
                      found + "; jobs of a chain wait for all that have their name: give --name");
    }
    log::warning(found);
  }
}

}  // namespace fourfold::submit
