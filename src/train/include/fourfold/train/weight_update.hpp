// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/parallel/parameter_shard.hpp>
#include <fourfold/parallel/training_hooks.hpp>
#include <fourfold/train/gradient_norm.hpp>
#include <fourfold/train/optimizer.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace fourfold::train {

/// The order in which gradients are complete: matrices from the last unit down, then the vectors.
/// Both holders of a tied embedding come to its tiles in one order, whatever else they hold.
std::vector<std::size_t> update_order(const model::Parameters& parameters);

/// What a step does with gradients that are on their way: waits for them, finds their norm, clips,
/// updates masters, moments and weights, and lets others know of new weights. It has two ways:
///
/// - the norm decides (clipping, or a loss scale): it is found first, then everything is updated;
/// - nothing depends on the norm: each segment is updated as soon as its gradients are reduced, and
///   the norm is found for people.
class WeightUpdate {
 public:
  /// All but the norm is borrowed. @param order  update_order()
  WeightUpdate(const parallel::ParameterShard& share, parallel::TrainingHooks& hooks,
               Optimizer& optimizer, std::span<const std::size_t> order, GradientNorm norm,
               bool norm_decides);

  /// Enqueued on `stream`; collective over the mesh.
  /// @param step          its gradient_scale is found here
  /// @param more_changes  weights will change again before anybody uses them
  /// @param reduced       called when all gradients are reduced, as far as the stream goes
  void run(const UpdateStep& step, double loss_scale, bool more_changes,
           const std::function<void()>& reduced, device::StreamRef stream);
  /// Of the gradients of the loss itself, before clipping. Once after each run(); blocks the host.
  float norm(device::StreamRef stream) { return norm_.found(stream); }

  /// Whether all weights of this rank's share are numbers. Blocks the host; between steps.
  bool weights_are_finite(device::StreamRef stream) const;

 private:
  void wait_for_all_gradients(device::StreamRef stream);
  /// @param as_reduced  each segment as soon as its gradients are reduced; else all are already
  void update_all(UpdateStep step, bool more_changes, bool as_reduced, device::StreamRef stream);

  const parallel::ParameterShard& share_;
  parallel::TrainingHooks& hooks_;
  Optimizer& optimizer_;
  std::span<const std::size_t> order_;
  GradientNorm norm_;
  bool norm_decides_;
};

}  // namespace fourfold::train
