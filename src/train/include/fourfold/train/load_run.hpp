// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace fourfold::train
