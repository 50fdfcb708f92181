// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace fourfold::train {

/// The run file in a step, or in the newest valid one of a folder of steps or of a run. There are
/// two: the one below, and `program::run_file_in_checkpoint`, for programs that start where there
/// is neither MPI nor HDF5. Both say the same of what they cannot read.
/// @throws UserError as open_named_checkpoint()
using RunFileOf = std::function<std::string(const std::string& path)>;

/// The run, as every program sees it: runfile::load_run_config(), with what the checkpoint and the
/// token files know.
///
/// - Where the run file has no [model] table, the model is the one of the checkpoint that
///   checkpoint.resume names; of the run's own newest one with "auto", or where a chain of jobs has
///   outlived what it began with.
/// - model.vocab is the value written, else the preset's or the checkpoint's, else that of the
/// token
///   files; data.tokenizer is settled with them too (with_token_settings()).
///
/// Local: each process that calls it reads these files.
/// @throws UserError: as load_run_config and with_token_settings; as run_file_of when the model has
///   to come from a checkpoint, and neither can be opened
runfile::EffectiveConfig load_run(const std::filesystem::path& file,
                                  std::span<const std::string> overrides,
                                  const RunFileOf& run_file_of);

/// The same, reading checkpoints itself.
runfile::EffectiveConfig load_run(const std::filesystem::path& file,
                                  std::span<const std::string> overrides = {});

// What a user names where a checkpoint is asked for. Every program takes the same: one step; a
// folder of steps, of which the newest that holds together is meant; the folder of a run
// (log.dir), or its run file, whose checkpoint.dir is meant. ":best" after any of the last three
// means the step of the lowest noted validation loss (io::best_step()), ":latest" the newest.

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
