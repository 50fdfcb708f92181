// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a run may have beside the plain step. The step runner lists what there is and tells each of
/// them where a step stands, in the order of the list; nothing else of it knows them.
#pragma once

#include <fourfold/device/stream.hpp>
#include <fourfold/parallel/tensor_parallel.hpp>
#include <fourfold/parallel/training_hooks.hpp>
#include <fourfold/train/optimizer.hpp>
#include <fourfold/train/outer_optimizer.hpp>
#include <fourfold/train/step_recorder.hpp>

#include <cstdint>
#include <functional>
#include <utility>

namespace fourfold::train {

/// All calls come on all ranks alike, ordered on the stream; what is collective is so over the
/// mesh.
class StepFeature {
 public:
  virtual ~StepFeature() = default;
  StepFeature() = default;
  StepFeature(const StepFeature&) = delete;
  StepFeature& operator=(const StepFeature&) = delete;

  /// Before the passes of a step.
  virtual void begin_step(device::StreamRef /*stream*/) {}
  /// A part of the step has been enqueued.
  virtual void end_part(StepPart /*part*/, device::StreamRef /*stream*/) {}
  /// Whether it changes weights again after the update that completes so many steps.
  virtual bool changes_weights(std::int64_t /*completed_steps*/) const { return false; }
  virtual void after_update(std::int64_t /*completed_steps*/, device::StreamRef /*stream*/) {}
  /// As StepRunner::prepare_save().
  virtual void prepare_save(device::StreamRef /*stream*/) {}
  /// What it has communicators move.
  virtual void add_moved_memory(parallel::MovedMemories& /*moved*/) const {}
};

/// Work on a stream that the caller leaves to the step runner.
using OnStream = std::function<void(device::StreamRef)>;

/// Optimizer state that is brought near beside the passes (offload.optimizer).
class OffloadedState final : public StepFeature {
 public:
  /// @param optimizer  borrowed
  explicit OffloadedState(Optimizer& optimizer) : optimizer_(&optimizer) {}
  void begin_step(device::StreamRef /*stream*/) override { optimizer_->begin_step(); }

 private:
  Optimizer* optimizer_;
};

/// Gradients that travel compressed (mesh.dp_compress).
class CompressedGradients final : public StepFeature {
 public:
  /// @param hooks             borrowed
  /// @param wait_for_readers  orders a stream after who reads what compression has left out
  CompressedGradients(parallel::TrainingHooks& hooks, OnStream wait_for_readers)
      : hooks_(&hooks), wait_for_readers_(std::move(wait_for_readers)) {}
  void begin_step(device::StreamRef stream) override {
    if (hooks_->keeps_errors()) {
      wait_for_readers_(stream);
    }
  }
  void prepare_save(device::StreamRef stream) override { hooks_->fold_errors(stream); }

 private:
  parallel::TrainingHooks* hooks_;
  OnStream wait_for_readers_;
};

/// Replicas that train by themselves and meet from time to time (mesh.dp_mode = "local").
class LocalReplicas final : public StepFeature {
 public:
  /// All is borrowed.
  /// @param make_weights  from new masters, and tells the hooks
  LocalReplicas(const OuterOptimizer& outer, Optimizer& optimizer, parallel::TrainingHooks& hooks,
                OnStream make_weights)
      : outer_(&outer),
        optimizer_(&optimizer),
        hooks_(&hooks),
        make_weights_(std::move(make_weights)) {}
  bool changes_weights(std::int64_t completed_steps) const override {
    return outer_->ends_round(completed_steps);
  }
  void after_update(std::int64_t completed_steps, device::StreamRef stream) override;
  void prepare_save(device::StreamRef stream) override;
  void add_moved_memory(parallel::MovedMemories& moved) const override {
    outer_->add_moved_memory(moved);
  }

 private:
  /// Replicas meet; others learn of the new weights. Blocks the host where state is offloaded.
  void meet(device::StreamRef stream);

  const OuterOptimizer* outer_;
  Optimizer* optimizer_;
  parallel::TrainingHooks* hooks_;
  OnStream make_weights_;
  bool met_ = true;  ///< no step since the replicas met
};

/// When the parts of steps end, for as long as there is a recorder.
class StepTracing final : public StepFeature {
 public:
  /// @param recorder  borrowed; or nullptr
  void record_into(StepRecorder* recorder) noexcept { recorder_ = recorder; }
  void end_part(StepPart part, device::StreamRef stream) override {
    if (recorder_ != nullptr) {
      recorder_->end(part, stream);
    }
  }

 private:
  StepRecorder* recorder_ = nullptr;
};

}  // namespace fourfold::train
