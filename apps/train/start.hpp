// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"

#include <fourfold/comm/start_watch.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <memory>
#include <optional>

namespace fourfold::train_program {

/// The run file, where it can be used. One that cannot is told of behind MPI_Init: before it, every
/// rank would.
std::optional<runfile::EffectiveConfig> config_before_mpi(const Arguments& arguments);

/// Watches from here on whether all ranks come to MPI_Init, until it is destroyed. A start that
/// hangs ends with hang.json and exit.json in log.dir; a dry run, which touches no file, without,
/// and does not know who is missing. Nothing where the run file does not want it.
std::unique_ptr<comm::StartWatch> watch_start(const runfile::RunConfig& config, bool dry_run);

}  // namespace fourfold::train_program
