// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "queued_jobs.hpp"
#include "sbatch_environment.hpp"
#include "slurm_command.hpp"
#include "submission_check.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/batch/finished_file.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/own_file.hpp>
#include <fourfold/program/checkpoint_run_file.hpp>
#include <fourfold/program/command_output.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/runfile/key_search.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/stop_request.hpp>

#include <filesystem>

namespace {

using fourfold::ExitCode;
using fourfold::UserError;
namespace batch = fourfold::batch;
namespace runfile = fourfold::runfile;
namespace submit = fourfold::submit;

/// Writes the script where a chain finds it again, and hands it to sbatch.
ExitCode send(const batch::Submission& submission, const std::string& script) {
  if (fourfold::train::is_stop_asked_for(submission.log_dir)) {
    throw UserError(ExitCode::no_progress,
                    fourfold::format_message(
                        "{} exists (it asks for no more training); remove it to go on",
                        fourfold::telemetry::RunFiles(submission.log_dir).stop().string()));
  }
  submit::look_for_queued_jobs(submission);
  fourfold::io::refuse_foreign_file(submission.script,
                                    {batch::script_mark, "fourfold submit", batch::script_opening},
                                    fourfold::Links::refuse);
  fourfold::telemetry::make_log_dir(submission.log_dir);
  fourfold::io::AtomicFile file(submission.script);
  file.write(script);
  file.publish();
  submit::clear_the_way(submission);
  const batch::SubmittedJob job = submit::submit_script(submission.script, submission.name);
  fourfold::program::print("{}\n", job.number);
  const std::string cluster = job.cluster.empty() ? "" : " --cluster=" + job.cluster;
  fourfold::log::info(fourfold::format_message(
      "submitted {}; `squeue{} --job={}` shows the job, {} is its log", submission.script.string(),
      cluster, job.number, batch::log_of(submission, job.number).string()));
  return ExitCode::finished;
}

ExitCode make(const submit::Arguments& arguments) {
  const runfile::EffectiveConfig effective = fourfold::train::load_run(
      arguments.run_file, arguments.overrides, fourfold::program::run_file_in_checkpoint);
  for (const std::string& warning : effective.warnings) {
    fourfold::log::warning(warning);
  }
  for (const std::string& note : effective.notes) {
    fourfold::log::info(note);
  }
  runfile::validate_data(effective.config, effective.origins);
  const batch::Submission submission = submit::checked_submission(arguments, effective);
  const std::string script = batch::script_of(submission);
  if (!arguments.go) {
    fourfold::program::print_data(script);
    std::error_code ignored;
    if (!std::filesystem::exists(submission.log_dir, ignored)) {
      fourfold::log::info(
          fourfold::format_message("before sbatch takes this: mkdir -p {} (Slurm makes no folder "
                                   "for a log, and the job would fail without one; --go makes it)",
                                   submission.log_dir.string()));
    }
    return ExitCode::finished;
  }
  if (batch::is_finished(effective.config.log.dir, effective.config.train.steps)) {
    fourfold::log::info(fourfold::format_message(
        "{}: the run is finished, there is nothing to submit", effective.config.log.dir));
    return ExitCode::finished;
  }
  return send(submission, script);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{
      "Checks that a run fits the nodes it is meant for, and prints the batch script that trains "
      "it; with --go, submits it.",
      "fourfold submit"};
  submit::Arguments arguments;
  submit::describe(command, arguments);
  return fourfold::program::run("fourfold submit", [&] {
    if (const auto end =
            fourfold::program::parse(command, argc, argv, fourfold::runfile::keys_called)) {
      return *end;
    }
    fourfold::program::tell_everything();
    return make(arguments);
  });
}
