// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/model/parallel_hooks.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/model/stage.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>

namespace fourfold::train {

/// The run file of the training run that saved it, with all defaults. Programs of a login node ask
/// for it without the libraries that a model needs.
/// @throws UserError (config) when it cannot be read
runfile::RunConfig saved_config(const io::Checkpoint& checkpoint);

/// A trained model, read from a checkpoint for evaluation or sampling; any checkpoint opens on any
/// number of ranks. Every rank holds all weights; the ranks of the cp axis share each sequence, by
/// ring attention.
class SavedModel {
 public:
  /// Whether Stage::logits() has those of a whole forward pass, or only the loss is there, made in
  /// train.head_chunks as in training.
  enum class Logits : std::uint8_t { in_chunks, whole };

  /// Collective over `mesh`, which is borrowed.
  /// @param sequences  the most sequences of one forward pass
  /// @throws UserError as io::find_checkpoint; data_corrupt naming file and tensor when weights are
  ///   damaged; config when the cp axis cannot cut the model's context, or as model::Stage
  /// @pre mesh has dp and cp only
  SavedModel(const io::Checkpoint& checkpoint, std::int64_t sequences, comm::Mesh& mesh,
             Logits logits = Logits::in_chunks);

  /// The run file of the training run.
  const runfile::RunConfig& config() const noexcept { return config_; }
  model::Stage& stage() noexcept { return stage_; }
  device::Arena& arena() noexcept { return arena_; }

 private:
  runfile::RunConfig config_;
  device::Arena arena_;
  model::Parameters parameters_;
  std::unique_ptr<model::ParallelHooks> hooks_;
  model::Stage stage_;
};

}  // namespace fourfold::train
