// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/parallel_hooks.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/parallel/parameter_shard.hpp>
#include <fourfold/parallel/shard_layout.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace fourfold::parallel {

/// Who sums what. Everything is borrowed and outlives the reduction.
struct ReductionPlan {
  /// The ranks that share the parameters out; if nothing is sharded, all ranks that hold them.
  comm::Communicator* group = nullptr;
  /// The ranks with this rank's share in other groups. Size 1: there is one group.
  comm::Communicator* replicas = nullptr;
  /// All ranks that hold the parameters; group and replicas span it.
  comm::Communicator* plane = nullptr;
  const model::Parameters* parameters = nullptr;
  const ParameterShard* share = nullptr;
  const ShardLayout* layout =
      nullptr;  ///< of the share; of one rank: all_reduce, else reduce_scatter
  /// Units in the order in which a step completes their gradients.
  std::vector<int> finishing_units;
  std::int64_t bucket_bytes = 4;  ///< at least; collectives are about this large
};

/// Sums gradients over the data plane while the backward passes go on, into what
/// ParameterShard::Run::gradient shows. Element by element the sum is that over the ranks of the
/// group, in their order, then over the replicas; how it is cut into messages, and whether it is
/// sharded, changes no bits.
///
/// The sums run on a stream of their own, so that on a device the backward pass goes on beside
/// them. Collective: all ranks make the same calls in the same order.
class GradientReduction {
 public:
  virtual ~GradientReduction() = default;
  GradientReduction() = default;
  GradientReduction(const GradientReduction&) = delete;
  GradientReduction& operator=(const GradientReduction&) = delete;

  /// Before the first micro-batch of a step: gradients are zero.
  virtual void begin_step(device::StreamRef stream) = 0;
  /// As ParallelHooks::gradients_needed and gradients_ready.
  virtual void needed(model::WeightGroup part, device::StreamRef stream) = 0;
  virtual void ready(model::WeightGroup part, model::Gradients state, device::StreamRef stream) = 0;
  /// All units are complete: starts what is left, the vectors among it.
  virtual void finish(device::StreamRef stream) = 0;
  /// Orders `stream` after the sums of a segment. @pre finish() came before
  virtual void wait(std::size_t segment, device::StreamRef stream) = 0;

  /// Ends a step: what the reduction keeps from one step to the next is that of this step, or, if
  /// it had no effect, that of before.
  virtual void finish_step(bool /*applied*/) {}
  /// Forgets what it keeps and no checkpoint has. Ordered on `stream`; may block the host.
  virtual void forget(device::StreamRef /*stream*/) {}
  /// Bytes that this rank hands to others in a step, whatever the transport makes of them. 0: not
  /// known
  virtual std::int64_t sent_bytes() const { return 0; }
};

/// Once per step: gradients of all micro-batches are added up in whole memory first. Units are
/// summed in buckets as their last micro-batch completes them: neighbours share one if nothing is
/// sharded, large ones are cut.
std::unique_ptr<GradientReduction> reduce_each_step(const ReductionPlan& plan);

/// Once per micro-batch: what a part adds goes to the share at once, so that blocks have two
/// buffers in turn for their gradients rather than memory each. Vectors are summed once per step.
/// @pre matrices of gradients are double_buffered; the share has gradients of its own
std::unique_ptr<GradientReduction> reduce_each_micro_batch(const ReductionPlan& plan,
                                                           device::Arena& arena);

}  // namespace fourfold::parallel
