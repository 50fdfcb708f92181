// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/named_checkpoint.hpp>
#include <fourfold/train/saved_config.hpp>
#include <fourfold/train/token_settings.hpp>

#include <optional>

namespace fourfold::train {
namespace {

std::optional<model::ModelConfig> model_of(const runfile::CheckpointConfig& config) {
  std::optional<io::Checkpoint> checkpoint;
  comm::run_ranks(1, [&](comm::Communicator& self) {
    try {
      checkpoint = open_named_checkpoint(config.resume, self);
    } catch (const UserError&) {
      checkpoint = io::find_newest_valid(config.dir, self);
      if (!checkpoint) {
        throw;
      }
    }
  });
  return saved_config(*checkpoint).model.resolved();
}

std::optional<std::int64_t> vocab_of_newest_step(const std::filesystem::path& directory) {
  std::optional<std::int64_t> vocab;
  comm::run_ranks(1, [&](comm::Communicator& self) {
    const auto folders = io::step_folders(directory);
    for (auto folder = folders.rbegin(); folder != folders.rend() && !vocab; ++folder) {
      try {
        vocab = saved_config(io::open_checkpoint(*folder, self)).model.vocab;
      } catch (const UserError&) {  // a damaged one; the start says so and takes another
        continue;
      }
    }
  });
  return vocab;
}

}  // namespace

runfile::EffectiveConfig load_run(const std::filesystem::path& file,
                                  std::span<const std::string> overrides) {
  return with_token_settings(runfile::load_run_config(file, overrides, model_of),
                             vocab_of_newest_step);
}

}  // namespace fourfold::train
