// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/work.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/parallel_hooks.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/model/stage.hpp>
#include <fourfold/parallel/action_recorder.hpp>
#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/schedule_dependencies.hpp>
#include <fourfold/schedule/split_layers.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace fourfold::parallel {

/// Which micro-batches of a step are recorded and launched as graphs, pass by pass the same work:
/// none; those whose gradients stay partial, which is all but the last; or of these, too, all but
/// the first, whose passes wait for weights that are being gathered.
enum class GraphsOf : std::uint8_t { none, partial, partial_but_first };

struct GraphCounts {
  std::int64_t captures = 0;
  std::int64_t launches = 0;
};

/// One rank's chunks of the model, and its list of a schedule that runs them (the rules are in
/// schedule.hpp). Sends and receives go over the pp axis on streams of their own, beside the
/// computation.
///
/// A rank sends the rows of the residual stream that it holds, to the rank with the same position
/// on the other axes. With one stage and one chunk nothing is sent or copied.
class Pipeline {
 public:
  /// @param layout      its schedule lowered and checked; the same on all ranks; borrowed
  /// @param pp          borrowed; size() is the schedule's number of stages
  /// @param parameters  of this rank's chunks; borrowed
  /// @param hooks       borrowed
  /// @param options     of each stage, but slots and backward, which the schedule decides
  /// @param host        as Stage has it
  /// @param graphs      none, unless: one stage, one chunk, no dropout, activations stay on the
  ///   device, device::has_own_memory, and passes of partial gradients talk to no other rank
  Pipeline(const model::Architecture& config, const schedule::StageLayout& layout,
           comm::Communicator& pp, const model::Parameters& parameters, model::ParallelHooks& hooks,
           device::Arena& arena, model::StageOptions options, device::Arena* host = nullptr,
           GraphsOf graphs = GraphsOf::none);
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;

  /// One step: forward and backward of all micro-batches. Enqueued on `stream`; collective over pp
  /// @param batches  schedule.micro_batches of them; the same sizes on all ranks of the axis
  /// @param after_loss  called when what finds a micro-batch's loss is enqueued, on the rank that
  ///   has the head: its forward pass, or (Stage::finds_loss_backward) its backward pass. With
  ///   graphs what it enqueues is recorded with the passes, for good
  /// @pre with graphs: what the step before has enqueued is done
  void train(std::span<const model::Batch> batches, float gradient_scale,
             const std::function<void(model::Stage& head, int slot)>& after_loss,
             device::StreamRef stream);

  /// From now on train() writes the times of this rank's actions to `recorder` (borrowed, as many
  /// actions as the list has); nullptr: to nobody.
  void record_into(ActionRecorder* recorder) noexcept { recorder_ = recorder; }

  /// Forward of one micro-batch without dropout through all stages. Collective over pp.
  /// @pre no train() is under way
  void forward_evaluate(const model::Batch& batch, device::StreamRef stream);

  /// Of all steps so far.
  GraphCounts graph_counts() const noexcept;

  /// The stage with the head, or nullptr when another rank has it.
  model::Stage* head() noexcept;

 private:
  struct Step;
  void prepare();
  void take(std::size_t index, const Step& step);
  /// Whether this action and the one after it are the passes of a micro-batch that may be a graph.
  bool begins_graph(std::size_t index) const;
  void take_as_graph(std::size_t index, const Step& step);
  void post(const schedule::Action& action, const Step& step, int transfer);
  void compute(std::size_t index, const Step& step);
  void forward(const schedule::Action& action, const Step& step);
  void backward(const schedule::Action& action, model::Gradients state, const Step& step);
  void wait_for(int transfer, device::StreamRef stream);
  void make_progress();
  void note_complete(int transfer);

  model::Stage& stage(int chunk) { return stages_[chunk]; }
  const std::vector<schedule::Action>& actions() const;
  int slot_of(int chunk, int micro_batch) const;

  const schedule::Schedule* schedule_;
  comm::Communicator* pp_;
  std::vector<model::Stage> stages_;  ///< by chunk
  // From the first step on:
  std::vector<schedule::Dependencies::Node> nodes_;  ///< of this rank's actions
  std::vector<std::size_t> last_weight_;  ///< per chunk: the action that completes its gradients
  std::vector<std::vector<int>> slots_;   ///< [chunk][micro-batch]
  std::vector<comm::Work> works_;         ///< by transfer; of those this rank takes part in
  std::vector<int> in_flight_;            ///< transfers to look after
  std::vector<std::size_t> posted_by_;    ///< the action that posted it, by transfer
  GraphsOf graphs_of_ = GraphsOf::none;
  std::unique_ptr<class MicroBatchGraphs> graphs_;
  ActionRecorder* recorder_ = nullptr;
  device::Stream sending_;
  device::Stream receiving_;
  device::Event produced_;
};

}  // namespace fourfold::parallel
