// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run_directory.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/comm/startup_watchdog.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <CLI/CLI.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::train_program {

/// The command line of `fourfold train`. It is frozen: what a run is stands in the run file.
struct Arguments {
  std::string run_file;
  std::vector<std::string> overrides;        ///< --set, and the options that are short for one
  std::vector<std::string> allowed_changes;  ///< --allow-change
  bool print_config = false;
  bool dry_run = false;
};

/// Binds the options of `command` to `arguments`, with help texts.
void describe(CLI::App& command, Arguments& arguments);

/// Everything from the start of MPI to its end: one start of a run on this rank. Collective over
/// all that the launcher has started.
/// @param argc, argv  for MPI_Init
/// @param directory   made as soon as it is known; errors are told through it
/// @throws Error
ExitCode train_run(const Arguments& arguments, int argc, char** argv,
                   std::optional<RunDirectory>& directory);

/// Leaves word of an error. One that comes before the run file is read, or from it, is told as well
/// if log.dir can be found: `fourfold job end` looks for it there.
void note_failure(const Arguments& arguments, std::optional<RunDirectory>& directory, ExitCode code,
                  const std::string& message);

/// A wrong word on the command line: the run file may still be known, and `fourfold job end` is to
/// find in log.dir that another start would not mend that. By one rank of those that say so.
void note_wrong_command_line(Arguments arguments, const std::vector<std::string>& words);

/// The run file, where it can be used. One that cannot is told of after MPI_Init: before it, every
/// rank would.
std::optional<runfile::EffectiveConfig> config_before_mpi(const Arguments& arguments);

/// Watches from here on whether all ranks come to MPI_Init, until it is destroyed. A start that
/// hangs ends with hang.json and exit.json in log.dir; a dry run, which touches no file, without,
/// and does not know who is missing. Nothing where the run file does not want it.
std::unique_ptr<comm::StartupWatchdog> watch_start(const runfile::RunConfig& config, bool dry_run);

/// Tells of nodes that do not see the run's files, and ends the start, by which they are left out
/// of the next one. Collective; returns where there are none. One that sees all writes exit.json.
/// @param config  nothing where this rank could not read the run file
/// @throws UserError (node_fault)
void refuse_blind_nodes(const std::optional<runfile::RunConfig>& config,
                        const std::optional<comm::Failure>& failure, bool dry_run,
                        comm::MpiRuntime& mpi);

}  // namespace fourfold::train_program
