// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "send.hpp"
#include "submission_check.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/batch/chain.hpp>
#include <fourfold/batch/kept_run.hpp>
#include <fourfold/program/checkpoint_option.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/runfile/run_key.hpp>
#include <fourfold/telemetry/own_files.hpp>
#include <fourfold/train/first_look.hpp>
#include <fourfold/train/load_run.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace {

using fourfold::ExitCode;
namespace batch = fourfold::batch;
namespace runfile = fourfold::runfile;
namespace submit = fourfold::submit;

/// Nothing where only the nodes of the job may see what the run file names: its first start keeps
/// it then.
std::optional<submit::RunToKeep> to_keep(const submit::Arguments& arguments, std::string text,
                                         const runfile::EffectiveConfig& effective) {
  if (const auto why = batch::why_not_kept(effective.config.log.dir, arguments.run_file)) {
    fourfold::log::info(fourfold::format_message(
        "{} is not kept for later starts, which read it anew: {}", arguments.run_file, *why));
    return std::nullopt;
  }
  try {
    return submit::RunToKeep{std::move(text), fourfold::train::run_inputs(effective)};
  } catch (const fourfold::UserError& error) {
    if (!arguments.skips_path_checks) {
      throw;
    }
    fourfold::log::warning(error.what());
    return std::nullopt;
  }
}

ExitCode make(const submit::Arguments& arguments) {
  std::string text = runfile::run_file_text(arguments.run_file);
  const runfile::EffectiveConfig effective = fourfold::train::load_run(
      arguments.run_file, arguments.overrides, fourfold::program::run_file_in_checkpoint);
  runfile::log_remarks(effective);
  runfile::validate_data(effective.config, effective.origins);
  const batch::Submission submission = submit::checked_submission(arguments, effective);
  fourfold::train::look_alone(effective.config, arguments.allowed_changes);
  fourfold::telemetry::refuse_foreign_files(submission.log_dir, {.config = false});
  const std::string script = batch::script_of(submission);  // refuses what no script can hold
  if (!arguments.go) {
    submit::check_paths(effective, arguments.skips_path_checks);
    fourfold::program::print_data(script);
    std::error_code ignored;
    if (!std::filesystem::exists(submission.log_dir, ignored)) {
      fourfold::log::info(
          fourfold::format_message("before sbatch takes this: mkdir -p {} (Slurm makes no folder "
                                   "for a log, and the job would fail without one; --go makes it)",
                                   fourfold::shell_word(submission.log_dir.string())));
    }
    return ExitCode::finished;
  }
  if (batch::is_finished(effective.config.log.dir, effective.config.train.steps) &&
      fourfold::train::look_before_answer(effective.config, arguments.allowed_changes)) {
    fourfold::log::info(fourfold::format_message(
        "{}: the run is finished, there is nothing to submit", effective.config.log.dir));
    return ExitCode::finished;
  }
  submit::check_paths(effective, arguments.skips_path_checks);
  return submit::send(submission, to_keep(arguments, std::move(text), effective));
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
    fourfold::program::enable_verbose_log();
    submit::take_memory_of_environment(arguments);
    submit::refuse_wrong_variables();
    return make(arguments);
  });
}
