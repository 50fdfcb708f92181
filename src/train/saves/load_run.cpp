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

model::Architecture model_in(const std::string& path, const RunFileOf& run_file_of) {
  return runfile::parse_saved_config(run_file_of(path), path).model.resolved();
}

/// The model in the newest step of a folder whose index can be read. What is damaged about the
/// others is for the start to say; a run file that this program does not know is not passed over.
std::optional<model::Architecture> model_of_newest(const std::filesystem::path& directory,
                                                   const RunFileOf& run_file_of) {
  std::vector<std::filesystem::path> folders;
  try {
    folders = io::step_folders(directory);
  } catch (const UserError&) {
    return std::nullopt;
  }
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    try {
      return model_in(folder->string(), run_file_of);
    } catch (const UserError& error) {
      if (error.code() == ExitCode::config) {
        throw;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

runfile::EffectiveConfig load_run(const std::filesystem::path& file,
                                  std::span<const std::string> overrides,
                                  const RunFileOf& run_file_of) {
  const auto model_of =
      [&](const runfile::CheckpointConfig& config) -> std::optional<model::Architecture> {
    if (config.resume == "auto") {
      return model_of_newest(config.dir, run_file_of);
    }
    try {
      return model_in(config.resume, run_file_of);
    } catch (const UserError&) {
      auto own = model_of_newest(config.dir, run_file_of);
      if (!own) {
        throw;
      }
      return own;
    }
  };
  return with_token_settings(runfile::load_run_config(file, overrides, model_of));
}

}  // namespace fourfold::train
