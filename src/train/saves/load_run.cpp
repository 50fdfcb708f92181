// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/token_settings.hpp>

#include <optional>
#include <vector>

// Programs without HDF5 are linked with this: nothing here opens a checkpoint.

namespace fourfold::train {

namespace {

/// The run file in the newest step of a folder whose index can be read. What is wrong with the
/// others is for the start to say.
std::optional<std::string> run_file_of_newest(const std::filesystem::path& directory,
                                              const RunFileOf& run_file_of) {
  std::vector<std::filesystem::path> folders;
  try {
    folders = io::step_folders(directory);
  } catch (const UserError&) {
    return std::nullopt;
  }
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    try {
      return run_file_of(folder->string());
    } catch (const UserError&) {
      continue;
    }
  }
  return std::nullopt;
}

/// The run file in the checkpoint that a run begins with, or goes on from.
std::optional<std::string> run_file_of_start(const runfile::CheckpointConfig& config,
                                             const RunFileOf& run_file_of) {
  if (config.resume == "auto") {
    return run_file_of_newest(config.dir, run_file_of);
  }
  try {
    return run_file_of(config.resume);
  } catch (const UserError&) {
    auto own = run_file_of_newest(config.dir, run_file_of);
    if (!own) {
      throw;
    }
    return own;
  }
}

}  // namespace

runfile::EffectiveConfig load_run(const std::filesystem::path& file,
                                  std::span<const std::string> overrides,
                                  const RunFileOf& run_file_of) {
  const auto model_of =
      [&](const runfile::CheckpointConfig& config) -> std::optional<model::Architecture> {
    const auto text = run_file_of_start(config, run_file_of);
    return text ? std::optional(runfile::parse_saved_config(*text, config.resume).model.resolved())
                : std::nullopt;
  };
  return with_token_settings(runfile::load_run_config(file, overrides, model_of));
}

}  // namespace fourfold::train
