// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "training.hpp"

#include <fourfold/program/command_line.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

namespace fourfold::train_program {
namespace {

const char* const files_help = R"(
FILES (in log.dir)
  metrics.jsonl    one JSON object per step, evaluation and checkpoint
  status.json      where the run is, replaced at every record
  report.html      curves and facts of the run, one file, opens offline
  config.toml      the run file as it was used, with the origin of each value; not where it is
                   the run file itself
  exit.json        how the run ended ("running" until it has); trust it over the launcher's
                   exit code. A start that is refused before its first step leaves all files as
                   they are, but for a line in attempts.jsonl under `fourfold job begin`
  FINISHED         the target is reached, and at which step; batch scripts start nothing more
  STOP             make this file and the run saves and stops after its step (exit code 75); as
                   long as it lies there nothing starts again (exit code 93)
  SAVE             make this file and the run saves after its step, removes it and goes on

SIGNALS
  SIGTERM, SIGINT, SIGHUP (not under nohup), SIGUSR1, SIGUSR2 and SIGXCPU ask the run to save
                   and stop after its step (exit code 75); one that comes during set-up, to stop
                   before the first step. SIGPIPE is ignored: a reader of the log may go.

ENVIRONMENT
  FOURFOLD_DEADLINE  end of the job in seconds since 1970; the run saves and stops in time.
                     Default: SLURM_JOB_END_TIME, where Slurm sets it. A time that is over when
                     the run starts is ignored, with a warning.
  FOURFOLD_WARNING_S so many seconds before that end a signal to the ranks is the batch
                     system's warning, not a person's. Default: 250.
  OMP_NUM_THREADS    threads per rank. Default: 1, one rank per core.

EXAMPLES
  fourfold train run.toml --print-config
  mpiexec -n 4 fourfold train run.toml
  mpiexec -n 2 fourfold train run.toml --set train.steps=2000    # train longer, on another mesh

RUN FILE
)";

constexpr const char* set_option = "--set";
constexpr const char* weights_option = "--resume-weights-only";

/// Options that stand for --set KEY=VALUE.
struct Short {
  const char* option;
  const char* key;
  const char* help;
};
constexpr std::array shorts{Short{"--resume", "checkpoint.resume",
                                  "Short for --set checkpoint.resume=...: auto, never, or a step, "
                                  "a folder of steps or a run"},
                            Short{"--progress", "log.progress",
                                  "Short for --set log.progress=...: auto, bar, plain or none"}};

/// What the options set, in the order in which they stand on the command line: the last counts.
std::vector<std::string> overrides_in(const CLI::App& command) {
  std::vector<std::string> overrides;
  std::map<const CLI::Option*, std::size_t> seen;
  for (const CLI::Option* const option : command.parse_order()) {
    const std::string name = option->get_name();
    const auto is_short = std::ranges::find(shorts, name, &Short::option);
    if (name != set_option && name != weights_option && is_short == shorts.end()) {
      continue;
    }
    const std::string& value = option->results().at(seen[option]++);
    if (name == set_option) {
      overrides.push_back(value);
    } else if (name == weights_option) {
      overrides.push_back("checkpoint.resume=" + value);
      overrides.emplace_back("checkpoint.weights_only=true");
    } else {
      overrides.push_back(std::string(is_short->key) + "=" + value);
    }
  }
  return overrides;
}

}  // namespace

void describe(CLI::App& command, Arguments& arguments) {
  command.add_option("RUN_FILE", arguments.run_file, "The run file (TOML)")->required();
  program::add_repeatable_option(command, set_option, arguments.overrides,
                                 "Override a key of the run file; may be given several times",
                                 "KEY=VALUE");
  program::add_repeatable_option(command, "--allow-change", arguments.allowed_changes,
                                 "Go on although this key differs in meaning from the checkpoint's",
                                 "KEY");
  for (const Short& one : shorts) {
    command.add_option(one.option, one.help)->type_name("MODE");
  }
  command
      .add_option(weights_option,
                  "Begin a new run with the weights of this step, folder of steps or run, and "
                  "nothing else of it; without a [model] table also with its model")
      ->type_name("PATH");
  command.parse_complete_callback([&] { arguments.overrides = overrides_in(command); });
  command.add_flag("--print-config", arguments.print_config,
                   "Print the effective run file with the origin of each value, and stop");
  command.add_flag("--dry-run", arguments.dry_run,
                   "Set everything up, read the first batch, try the checkpoint directory, and "
                   "stop before the first step");
  command.footer(
      "\nEXIT CODES\n" +
      program::exit_codes_table({ExitCode::data_corrupt, ExitCode::cannot_write,
                                 ExitCode::stopped_saved, ExitCode::config, ExitCode::node_fault,
                                 ExitCode::hang, ExitCode::no_progress}) +
      files_help + runfile::run_file_help());
}

}  // namespace fourfold::train_program
