// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/named_checkpoint.hpp>
#include <fourfold/train/saved_config.hpp>

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

}  // namespace

runfile::EffectiveConfig load_run(const std::filesystem::path& file,
                                  std::span<const std::string> overrides) {
  return runfile::load_run_config(file, overrides, model_of);
}

}  // namespace fourfold::train
