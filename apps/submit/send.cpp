// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "send.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/batch/kept_run.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/digest.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/line_follower.hpp>
#include <fourfold/io/own_file.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/stop_request.hpp>

#include <fmt/chrono.h>

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace fourfold::submit {
namespace {

void write_script(const std::filesystem::path& file, const std::string& text) {
  io::AtomicFile script(file);
  script.write(text);
  script.publish();
}

/// One at a time submits into a log.dir: the second finds the job of the first in the queue. Who
/// was refused leaves no folder where there was none.
std::unique_ptr<io::DirectoryLease> take_turn(const batch::Submission& submission) {
  io::refuse_place_in_step(submission.log_dir);
  io::LeaseOptions options{.name = ".submit-lease", .provisional = true, .gone_at_signal = true};
  options.doing = "is just submitting this run";
  options.remedy = "and of two jobs of a run the second is refused; wait for it, then see squeue";
  return std::make_unique<io::DirectoryLease>(submission.log_dir, io::LeaseHolder::this_process(),
                                              options);
}

/// Hands it to sbatch. Where that takes no job nothing is kept, and the jobs of an earlier
/// submission find their own script again.
batch::SubmittedJob submit_instead_of(const std::optional<std::string>& older,
                                      const batch::Submission& submission,
                                      const std::optional<batch::KeptRun>& kept,
                                      io::DirectoryLease& turn) {
  bool is_written = false;
  try {
    write_script(submission.script, io::with_sum(batch::script_of(submission)));
    is_written = true;
    clear_the_way(submission);
    batch::SubmittedJob job = submit_script(submission.script, submission.name);
    turn.confirm();
    return job;
  } catch (const MaybeSubmitted&) {
    turn.confirm();
    throw;  // the job that may be in the queue needs both
  } catch (const UserError&) {
    if (kept) {
      batch::forget(*kept);
    }
    if (is_written && older) {
      write_script(submission.script, *older);
    } else if (is_written) {
      std::error_code ignored;
      std::filesystem::remove(submission.script, ignored);
    }
    throw;
  }
}

/// The run as it is now, for all jobs of this submission.
batch::KeptRun keep(const batch::Submission& submission, const RunToKeep& run) {
  return batch::keep_run(telemetry::RunFiles(submission.log_dir).submitted(),
                         fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::time(nullptr))),
                         submission.run_file, run.text, run.inputs);
}

}  // namespace

ExitCode send(batch::Submission submission, const std::optional<RunToKeep>& run) {
  if (train::is_stop_asked_for(submission.log_dir)) {
    throw UserError(ExitCode::no_progress,
                    format_message("{} exists (it asks for no more training); remove it to go on",
                                   telemetry::RunFiles(submission.log_dir).stop().string()));
  }
  const auto turn = take_turn(submission);
  look_for_queued_jobs(submission);
  io::refuse_foreign_file(submission.script,
                          {.mark = batch::script_mark,
                           .maker = "fourfold submit",
                           .opening = batch::script_opening,
                           .is_unchanged = io::sum_holds},
                          Links::refuse);
  constexpr std::uint64_t most_bytes = 1 << 20;
  const auto older = io::text_if_readable(submission.script, most_bytes);
  std::optional<batch::KeptRun> kept;
  if (run) {
    kept = keep(submission, *run);
    submission.run_file = kept->run_file();
  }
  const batch::SubmittedJob job = submit_instead_of(older, submission, kept, *turn);
  program::print("{}\n", job.number);
  const std::string cluster = job.cluster.empty() ? "" : " --cluster=" + job.cluster;
  log::info(format_message("submitted {}; `squeue{} --job={}` shows the job, {} is its log",
                           submission.script.string(), cluster, job.number,
                           batch::log_of(submission, job.number).string()));
  if (kept) {
    log::info(format_message("it trains what is in {}, whatever becomes of the run file",
                             kept->folder.string()));
  }
  return ExitCode::finished;
}

}  // namespace fourfold::submit
