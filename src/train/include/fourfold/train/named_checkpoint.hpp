// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a user names where a checkpoint is asked for. Every program takes the same: one step; a
/// folder of steps, of which the newest that holds together is meant; the folder of a run
/// (log.dir), or its run file, whose checkpoint.dir is meant.
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <filesystem>
#include <string>

namespace fourfold::train {

/// The step, or the folder of steps, that is meant. Of a run that was moved or copied it is the
/// folder "checkpoints" in it, and not what its config.toml says, which may be another run's by
/// now. A run file is compared with the one that made the newest step there: its paths are read
/// from the working directory, which may be another run's. Local; reads folders, and config.toml
/// of a run.
/// @param most  by how much the two may differ: but for the keys that no run can change (the
///              model's), or as little as a restart takes without a word
/// @throws UserError (config) when there is nothing of that name, it is no such thing, or the steps
///         are of another run file
std::filesystem::path checkpoints_named(
    const std::string& path, runfile::OnResume most = runfile::OnResume::needs_allowance);

/// The same on all ranks; rank 0 looks. Collective.
std::filesystem::path checkpoints_named(const std::string& path, comm::Communicator& communicator);

/// Opens what is meant. Collective; rank 0 looks. @throws as io::find_checkpoint
io::Checkpoint open_named_checkpoint(const std::string& path, comm::Communicator& communicator);

}  // namespace fourfold::train
