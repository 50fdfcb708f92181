// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/graph.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/batch.hpp>
#include <fourfold/parallel/pipeline.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace fourfold::parallel {

/// The passes of micro-batches as graphs: hundreds of launches become one. A graph has what goes by
/// value as it was (sizes, the gradients' factor) and memory where it was (a slot's, the kernels'
/// scratch): one serves all micro-batches that have that in common, whose tokens are copied to
/// where it reads them.
///
/// What a step did as it was, a later step may record: by then the libraries have made their plans,
/// streams and scratch are there, and a factor that is another one in every step (ragged data) is
/// never worth it.
class MicroBatchGraphs {
 public:
  /// @param rows  of the largest micro-batch: sequences * tokens
  MicroBatchGraphs(std::int64_t rows, device::Arena& arena);

  /// @pre what the step before has enqueued is done
  void begin_step();

  /// Enqueues the passes of the micro-batch that it is given.
  using Passes = std::function<void(const model::Batch&)>;
  /// Enqueues `passes` of `batch`, as they are or as a graph; where they cannot be recorded it says
  /// so, and none are from then on. Neither allocates tensors nor waits.
  /// @pre no dropout: sample_N is not needed
  void run(int slot, const model::Batch& batch, float gradient_scale, const Passes& passes,
           device::StreamRef stream);

  const GraphCounts& counts() const noexcept { return counts_; }

 private:
  /// What a graph depends on.
  struct Key {
    int slot = 0;
    std::int64_t sequences = 0;
    std::int64_t tokens = 0;
    float gradient_scale = 0;
    std::uint64_t version = 0;  ///< kernels::recorded_work_version()
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Known {
    Key key;
    device::Graph graph;
    std::int64_t last_step = 0;
  };
  Known* find(const Key& key);
  Known* record(const Key& key, const model::Batch& batch, const Passes& passes,
                device::StreamRef stream);
  bool has_room();

  model::BatchMemory memory_;  ///< from which graphs read
  std::vector<Known> known_;
  std::vector<Key> seen_;         ///< in this step
  std::vector<Key> seen_before_;  ///< in the step before
  std::int64_t step_ = 0;
  bool can_record_ = true;
  GraphCounts counts_;
};

}  // namespace fourfold::parallel
