// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "send.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/directory_lease.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::submit {
namespace {

constexpr const char* by_number = "--sort=i";

/// The user's; with an option of squeue, those that it leaves. Nothing, and a warning, where it
/// cannot be asked.
/// @param format  the number, and what is wanted of the job
std::optional<std::vector<batch::QueuedJob>> queued_jobs(const std::string& option = by_number,
                                                         const char* format = batch::queue_format) {
  const auto squeue =
      // Not those that end: the next one is often submitted then.
      ask({"squeue", "--me", "--noheader", "--states=PENDING,CONFIGURING,RUNNING,SUSPENDED",
           std::string("--format=") + format, option});
  if (squeue && squeue->is_answer()) {
    return batch::queued_jobs_of(squeue->text);
  }
  log::warning(format_message("{}; whether a job of this run is in the queue already is not known",
                              squeue ? "squeue " + squeue->failure() : "there is no squeue here"));
  return std::nullopt;
}

bool is_folder(const std::filesystem::path& folder, const std::filesystem::path& log_dir) {
  std::error_code failure;  // of a folder that is not there yet, or not any more
  return folder == log_dir || std::filesystem::equivalent(folder, log_dir, failure);  // by a link
}

/// The first job that trains in this log_dir: by the script that it was submitted with, or, of one
/// that has begun by itself, by the run file in its comment (slurm/own_job.bash).
std::optional<batch::QueuedJob> job_of_run(const std::vector<batch::QueuedJob>& jobs,
                                           const std::filesystem::path& log_dir) {
  for (const batch::QueuedJob& job : jobs) {
    if (is_folder(std::filesystem::path(job.script).parent_path(), log_dir)) {
      return job;
    }
  }
  constexpr std::string_view mark = "fourfold-run-file=";
  for (const batch::QueuedJob& job :
       queued_jobs(by_number, "%A %k").value_or(std::vector<batch::QueuedJob>{})) {
    const std::size_t at = job.script.rfind(mark);
    if (at == std::string::npos) {
      continue;
    }
    const std::filesystem::path run_file = job.script.substr(at + mark.size());
    // log.dir/submitted/NAME/run.toml
    if (is_folder(run_file.parent_path().parent_path().parent_path(), log_dir)) {
      return batch::QueuedJob{job.number, run_file};
    }
  }
  return std::nullopt;
}

void refuse_or_warn(const batch::Submission& submission, const std::string& found) {
  if (!submission.beside) {
    throw UserError(ExitCode::config,
                    found +
                        "; of two that run at one time the second is refused: scancel that one, or "
                        "give --beside where this one is to go on after it");
  }
  log::warning(found);
}

/// A job, of whomever, that saves there now. (A lease alone may be of one whose node has died.)
void look_for_writer(const batch::Submission& submission) {
  const auto holder = io::living_holder_of(
      submission.checkpoint_dir, io::LeaseHolder::this_process(), io::LeaseOptions{}.name);
  if (!holder || holder->job.empty()) {
    return;
  }
  const auto state = ask({"squeue", "--noheader", "--jobs=" + holder->job, "--format=%T"});
  if (state && state->is_answer() && state->text.starts_with("RUNNING")) {
    refuse_or_warn(submission, format_message("job {} saves in checkpoint.dir ({})", holder->job,
                                              submission.checkpoint_dir.string()));
  }
}

}  // namespace

void look_for_queued_jobs(const batch::Submission& submission) {
  const auto queued = queued_jobs();
  if (!queued) {
    return;  // a controller that does not answer is asked once
  }
  for (const batch::QueuedJob& job : *queued) {
    const std::filesystem::path script = job.script;
    if (submission.chain > 0 && is_folder(script.parent_path(), submission.log_dir) &&
        script.filename() == submission.script.filename()) {
      throw UserError(
          ExitCode::config,
          format_message("job {} in the queue is of a chain of this run already, whose script {} "
                         "would change under it; scancel that job and the one after it to end it",
                         job.number, job.script));
    }
  }
  if (const auto job = job_of_run(*queued, submission.log_dir)) {
    refuse_or_warn(submission, format_message("job {} of this run is in the queue already ({})",
                                              job->number, job->script));
  }
  look_for_writer(submission);
  for (const batch::QueuedJob& job :
       queued_jobs("--name=" + submission.name).value_or(std::vector<batch::QueuedJob>{})) {
    if (is_folder(std::filesystem::path(job.script).parent_path(), submission.log_dir)) {
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
