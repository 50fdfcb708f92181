// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/parallel/parameter_share.hpp>
#include <fourfold/parallel/training_seams.hpp>
#include <fourfold/train/gradient_norm.hpp>
#include <fourfold/train/optimizer.hpp>
#include <fourfold/train/step_recorder.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::train {

/// The order in which gradients are complete: matrices from the last unit down, then the vectors.
/// Both holders of a tied embedding come to its tiles in one order, whatever else they hold.
std::vector<std::size_t> update_order(const model::Parameters& parameters);

/// What a step does with gradients that are on their way: waits for them, finds their norm, clips,
/// updates masters, moments and weights, and lets others know of new weights. It has three ways:
///
/// - the norm decides (clipping, or a loss scale): it is found first, then everything is updated;
/// - nothing depends on the norm: each segment is updated as soon as its gradients are reduced, and
///   the norm is found for people;
/// - the norm decides, and nobody waits for it (optim.post_validation): weights are made as if
///   nothing were clipped, and finish() makes the rest. If it was to be clipped after all, the
///   weights are made anew from the masters. So what one tries changes no bit. Behind a step that
///   was clipped or skipped nothing is tried: the next one probably is too.
class WeightUpdate {
 public:
  /// Borrowed.
  struct State {
    const parallel::ParameterShare& share;
    parallel::TrainingSeams& seams;
    Optimizer& optimizer;
    std::span<const std::size_t> order;  ///< update_order()
    comm::Communicator& stages;          ///< the ranks of the pp axis
  };
  WeightUpdate(const State& state, GradientNorm norm, bool norm_decides);

  struct Step {
    std::int64_t update = 1;  ///< 1 for the first one that a run applies: bias corrections
    double lr = 0;
    double loss_scale = 1;
    bool goes_on = false;       ///< passes of the next step come before finish()
    bool more_changes = false;  ///< weights will change again before anybody uses them
  };
  /// Enqueued on `stream`; collective over the mesh. @param recorder  told when gradients are
  /// reduced; or nullptr
  void begin(const Step& step, StepRecorder* recorder, device::StreamRef stream);

  struct Outcome {
    float norm = 0;       ///< of the gradients of the loss itself, before clipping
    bool tried = false;   ///< the update, before the norm was known
    bool redone = false;  ///< and other weights were right
  };
  /// Once behind each begin(). Collective over the mesh; blocks the host.
  Outcome finish(StepRecorder* recorder, device::StreamRef stream);

  /// Whether all weights of this rank's share are numbers. Blocks the host; between steps.
  bool weights_are_finite(device::StreamRef stream) const;

 private:
  void wait_for_all_gradients(device::StreamRef stream);
  /// @param as_reduced  each segment as soon as its gradients are reduced; else all are already
  void update_all(Optimizer::Makes makes, bool as_reduced, device::StreamRef stream);
  void find_norm(device::StreamRef stream);
  /// Makes the update that was tried. @return whether the weights were right
  bool make_tried(device::StreamRef stream);

  State state_;
  GradientNorm norm_;
  bool norm_decides_;
  Step step_;
  const float* gradient_scale_ = nullptr;  ///< Optimizer::Step's
  bool tried_ = false;
  bool norm_is_due_ = false;
  bool was_clipped_ = true;  ///< the last step, or skipped; true before the first
};

}  // namespace fourfold::train
