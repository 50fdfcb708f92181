// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "send.hpp"

#include "queued_jobs.hpp"
#include "sbatch_environment.hpp"
#include "slurm_command.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/line_follower.hpp>
#include <fourfold/io/own_file.hpp>
#include <fourfold/io/text_sum.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/stop_request.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>

namespace fourfold::submit {
namespace {

void write_script(const std::filesystem::path& file, const std::string& text) {
  io::AtomicFile script(file);
  script.write(text);
  script.publish();
}

/// Hands it to sbatch. Where that takes no job the jobs of an earlier submission find their own
/// script again.
batch::SubmittedJob submit_instead_of(const std::optional<std::string>& older,
                                      const batch::Submission& submission) {
  try {
    return submit_script(submission.script, submission.name);
  } catch (const Refused&) {
    if (older) {
      write_script(submission.script, *older);
    } else {
      std::error_code ignored;
      std::filesystem::remove(submission.script, ignored);
    }
    throw;
  }
}

}  // namespace

ExitCode send(const batch::Submission& submission, const std::string& script) {
  if (train::is_stop_asked_for(submission.log_dir)) {
    throw UserError(ExitCode::no_progress,
                    format_message("{} exists (it asks for no more training); remove it to go on",
                                   telemetry::RunFiles(submission.log_dir).stop().string()));
  }
  look_for_queued_jobs(submission);
  io::refuse_foreign_file(submission.script,
                          {.mark = batch::script_mark,
                           .maker = "fourfold submit",
                           .opening = batch::script_opening,
                           .is_unchanged = io::sum_holds},
                          Links::refuse);
  telemetry::make_log_dir(submission.log_dir);
  constexpr std::uint64_t most_bytes = 1 << 20;
  const auto older = io::text_if_readable(submission.script, most_bytes);
  write_script(submission.script, io::with_sum(script));
  clear_the_way(submission);
  const batch::SubmittedJob job = submit_instead_of(older, submission);
  program::print("{}\n", job.number);
  const std::string cluster = job.cluster.empty() ? "" : " --cluster=" + job.cluster;
  log::info(format_message("submitted {}; `squeue{} --job={}` shows the job, {} is its log",
                           submission.script.string(), cluster, job.number,
                           batch::log_of(submission, job.number).string()));
  return ExitCode::finished;
}

}  // namespace fourfold::submit
