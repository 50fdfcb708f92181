// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/comm/work.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/model/stage.hpp>
#include <fourfold/parallel/pipeline.hpp>
#include <fourfold/parallel/tensor_parallel.hpp>
#include <fourfold/parallel/training_hooks.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/evaluator.hpp>
#include <fourfold/train/loss_scale.hpp>
#include <fourfold/train/optimizer.hpp>
#include <fourfold/train/outer_optimizer.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/state_tier.hpp>
#include <fourfold/train/step_recorder.hpp>
#include <fourfold/train/weight_update.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fourfold::train {

using ErrorPieces = std::vector<parallel::ErrorFeedback::Piece>;

/// What one step gave, the same on all ranks.
struct StepOutcome {
  double loss = 0;  ///< mean over the valid targets of the global batch, nats
  /// global L2 norm before clipping, of the gradients of the loss itself; of local replicas the
  /// mean
  double grad_norm = 0;
  double loss_scale = 1;  ///< what the loss was multiplied by
  StepStatus status = StepStatus::applied;
};

/// What a run may have beside the plain step: what is to be done where a step stands; empty:
/// nothing. All calls come on all ranks alike, ordered on the stream; what is collective is so over
/// the mesh.
struct StepFeature {
  using OnStream = std::function<void(device::StreamRef)>;
  OnStream begin_run = {};   ///< from masters that are initial ones, or a checkpoint's
  OnStream begin_step = {};  ///< before the passes of a step
  /// A part of the step has been enqueued.
  std::function<void(StepPart, device::StreamRef)> end_part = {};
  /// Whether it changes weights again after the update that completes so many steps.
  std::function<bool(std::int64_t completed_steps)> changes_weights = {};
  std::function<void(std::int64_t completed_steps, device::StreamRef)> after_update = {};
  OnStream prepare_save = {};  ///< as StepRunner::prepare_save()
  /// What it has communicators move.
  std::function<void(parallel::MovedMemories&)> add_moved_memory = {};
};

/// One rank's model, optimizer and gradient reduction: everything an optimizer step touches on the
/// device. Takes all its memory from the arena when it is made; a step takes no
/// tensor memory but the kernels' scratch, which the first one sizes.
///
/// With L the sum of the losses of all valid targets of the global batch and n their number, every
/// micro-batch adds the gradient of its part of L / n, so the sum over micro-batches and ranks is
/// the gradient of the mean: ragged batches and ignored targets weigh what they should.
///
/// f16: the gradients are those of loss_scale() times the loss. Where they overflow on any rank,
/// the step changes nothing on all of them: weights, masters and moments keep every bit. No message
/// is needed for that. After the reductions, all holders of a gradient have the same bits; the
/// square of each logical element is in the global norm once, inf and nan survive every addition,
/// and the sum, reduced over the axes on which its terms differ, has the same bits on all ranks. So
/// the norm is finite on all ranks or on none, clip_scale() tells the optimizer's kernels without
/// the host, and outcome() tells the host later.
///
/// mesh.dp_mode = "local": the gradients, n and the norm are those of a replica (a position of the
/// dp axis) alone, and every mesh.average_every steps the replicas meet (outer_optimizer.hpp). A
/// step that overflows on one of them is skipped by all, so that they have one loss scale: this
/// takes a message, of one number, before the update.
class StepRunner {
 public:
  /// Collective over the mesh. Parameters are zero until initialised or restored.
  /// @param run  on this mesh; borrowed, as the others are
  StepRunner(const ResolvedRun& run, comm::Mesh& mesh, device::Arena& arena);
  StepRunner(ResolvedRun&& run, comm::Mesh& mesh, device::Arena& arena) = delete;
  StepRunner(const StepRunner&) = delete;  // features borrow
  StepRunner& operator=(const StepRunner&) = delete;

  /// Draws the initial weights. Collective over the data plane. Blocks the host.
  void initialise(std::uint64_t seed, device::StreamRef stream);
  /// Makes the weights from the share's masters, which a checkpoint has filled. Collective over the
  /// data plane.
  /// @param updates  that have made the masters what they are: how their weights are rounded
  void update_weights_from_masters(device::StreamRef stream, std::int64_t updates = 0);

  /// Enqueues step number `step` + 1 of the run on `stream`: forward and backward of all
  /// micro-batches, the gradient reduction (started bucket by bucket during the last backward
  /// pass), clipping, the optimizer. Collective over the mesh; does not wait for the device.
  void run(std::int64_t step, const StepBatches& batches, double lr, device::StreamRef stream);

  /// As model::ParallelHooks has it. @pre train.cuda_graphs = "never", or a mesh where graphs_of()
  /// has none
  void show_products_to(model::MatmulObserver* observer) { hooks_.show_products_to(observer); }

  /// From now on run() records the parts of the step after `load` and the pipeline's actions
  /// (borrowed); nullptr: nothing.
  void record_into(StepRecorder* recorder);

  /// The numbers of the last run(), and the loss scale of the next: to be called once after each
  /// run(). Blocks the host until the step is done on this rank.
  StepOutcome outcome(device::StreamRef stream);

  /// Brings the state into the form that a checkpoint keeps and a restart begins with: what a rank
  /// knows alone is summed up. A run goes on from it to the same bits as a restart does. To be
  /// called between steps. Replicas that train by themselves meet, and go on with the mean of their
  /// moments. Collective over the mesh; may block the host.
  void prepare_save(device::StreamRef stream);
  /// Until a mark (borrowed) has passed, masters, moments and what compression has left out stay as
  /// they are: whatever is enqueued to change them waits for it, the passes of the next step do not
  /// (with compression they do: sums change what it leaves out beside them). Does not block the
  /// host. To be called between steps, after prepare_save().
  void keep_state_until(const device::Event& mark) noexcept { state_is_read_ = &mark; }
  /// This rank's part of what compression has left out of the gradients, as prepare_save() leaves
  /// it; nothing where nothing is compressed.
  std::optional<ErrorPieces> error_pieces() const { return hooks_.error_pieces(); }
  /// Bytes of gradients that this rank hands to others in a step; 0: not known.
  std::int64_t sent_gradient_bytes() const { return hooks_.sent_gradient_bytes(); }

  /// Before the first step, restore() it from a checkpoint: bias corrections count applied updates.
  LossScale& loss_scale() noexcept { return loss_scale_; }
  const LossScale& loss_scale() const noexcept { return loss_scale_; }

  /// What this rank updates and saves.
  const parallel::ParameterShard& share() const noexcept { return share_; }
  const model::Parameters& parameters() const noexcept { return parameters_; }
  const Optimizer& optimizer() const noexcept { return optimizer_; }
  const StateTier& tier() const noexcept { return tier_; }
  /// Before anybody looks at the masters and moments between steps: offloaded ones come to where
  /// their views show them. Blocks the host.
  void synchronize_state() { optimizer_.synchronize(); }
  /// Whether all weights of this rank's share are numbers: masters that are none make none, and
  /// large ones overflow where they are rounded to f16. Blocks the host; between steps.
  bool weights_are_finite(device::StreamRef stream) const {
    return update_.weights_are_finite(stream);
  }
  const OuterOptimizer& outer_optimizer() const noexcept { return outer_; }
  const ResolvedRun& resolved() const noexcept { return *run_; }
  /// Micro-batches launched as CUDA graphs so far, and how many of these were recorded.
  parallel::GraphCounts graph_counts() const noexcept { return pipeline_.graph_counts(); }
  /// What communicators of the mesh and of this runner move of the arena.
  parallel::MovedMemories moved_memory() const;
  /// For an evaluation between steps. Collective over the pp axis.
  ForwardPass forward_pass();

 private:
  void accumulate_gradients(const StepBatches& batches, device::StreamRef stream);
  /// Losses on a stream of their own; finishes the gradients beside them.
  void reduce_losses_and_gradients(device::StreamRef stream);
  /// What the gradient of a sum of losses is multiplied by: loss_scale / n. n is a replica's where
  /// replicas train by themselves; so is the norm (gradient_norm.hpp).
  float gradient_factor(const StepBatches& batches) const;
  /// What the run has beside the plain step. What else depends on it: the README of src/train.
  void list_features();
  StepFeature local_replicas();
  /// Tells every feature that has something to do then, in the order of the list.
  template <class... Arguments>
  void tell(std::function<void(Arguments...)> StepFeature::*when,
            std::type_identity_t<Arguments>... arguments) const;
  /// From the masters, and tells the hooks. Blocks the host where state is offloaded.
  void make_weights(device::StreamRef stream);
  /// Orders `stream` after keep_state_until()'s mark.
  void wait_for_readers(device::StreamRef stream);

  const ResolvedRun* run_;
  LossScale loss_scale_;
  comm::Mesh* mesh_;
  model::Parameters parameters_;
  parallel::ShardLayout shards_;
  std::vector<std::size_t> order_;  ///< of segments, as they are updated
  StateTier tier_;
  parallel::ParameterShard share_;
  parallel::TrainingHooks hooks_;
  parallel::Pipeline pipeline_;
  Optimizer optimizer_;
  OuterOptimizer outer_;
  WeightUpdate update_;
  std::vector<StepFeature> features_;  ///< in the order of their turns, tracing last
  TensorView loss_sum_;                ///< f64 scalar
  device::Stream communication_;  ///< of losses, so that nothing after them waits for other stages
  device::Event produced_;
  comm::Work loss_reduction_;
  const device::Event* state_is_read_ = nullptr;
  std::int64_t targets_ = 0;
};

/// train.cuda_graphs = "auto": micro-batches of a rank with more tokens take so long that their
/// launches do not count.
inline constexpr std::int64_t most_tokens_for_graphs = 4096;

/// What train.cuda_graphs comes to. The same on all ranks.
/// @param has_devices  device::has_own_memory
parallel::GraphsOf graphs_of(const ResolvedRun& run, bool has_devices);

/// Why that is none, where train.cuda_graphs = true asks for them; else empty.
std::string_view why_no_graphs(const ResolvedRun& run, bool has_devices);

}  // namespace fourfold::train
