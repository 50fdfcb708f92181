// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"

#include <fourfold/comm/fail_together.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/comm/startup_watchdog.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <memory>
#include <optional>

namespace fourfold::train_program {

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
