// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// From sample numbers to the micro-batches of one rank. Legend: B sequences, T tokens of each that
/// this rank holds, N = B * T.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/mesh.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/data/sample_order.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/batch.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::train {

/// The data of one optimizer step on this rank.
struct StepBatches {
  std::span<const model::Batch> micro_batches;
  std::int64_t targets = 0;          ///< valid ones of the whole global batch, all ranks
  std::int64_t replica_targets = 0;  ///< of the part that this position of the dp axis trains on
};

/// Which tokens of each sample a rank holds: parallel::context_chunks.
using HeldTokens = std::array<Range, 2>;
HeldTokens held_tokens(const comm::Mesh& mesh, std::int64_t context);

/// One micro-batch's tensors in device memory and their image on the host. Rows that a batch does
/// not use keep what they held.
class MicroBatchBuffer {
 public:
  /// @param context  tokens of a sample, held here or not
  MicroBatchBuffer(std::int64_t sequences, std::int64_t context, const HeldTokens& held,
                   device::Arena& arena);

  /// Reads `samples` (at most B) and copies what is held of them to the device, ordered on
  /// `stream`. The target of a chunk's last token is the first token of the next chunk, held or
  /// not. Blocks until the copies of the last call are done, which wait for what was on `stream`
  /// then: of what is on it now it waits for nothing.
  /// @return how many of the targets held here are not ignored
  /// @throws UserError (data_corrupt) as TokenDataset::fill
  std::int64_t fill(const data::TokenDataset& dataset, Range samples, std::int64_t step,
                    device::StreamRef stream);
  const model::Batch& batch() const noexcept { return batch_; }

 private:
  void make_host_images(std::int64_t context);
  std::int64_t read_sample(const data::TokenDataset& dataset, std::int64_t sample,
                           std::span<std::int32_t> token, std::span<std::int32_t> target);

  HeldTokens held_;
  std::int64_t tokens_;                    ///< T
  std::vector<std::int32_t> whole_token_;  ///< of one sample; empty when all of it is held
  std::vector<std::int32_t> whole_target_;
  device::Tensor host_token_;  ///< pinned, as are those that follow: a copy waits, not the host
  device::Tensor host_target_;
  device::Tensor host_sample_;
  model::BatchMemory memory_;
  device::Stream copies_;  ///< of the host images; what is filled anew waits for them alone
  device::Event read_;     ///< by whoever was enqueued before the copies
  device::Event arrived_;
  model::Batch batch_;
};

/// Loads the micro-batches of training steps. A step's sample numbers are
/// [first_sample, first_sample + global_batch), so the position in the data is one number.
class BatchLoader {
 public:
  /// @param plan  its dp and micro_batch as the mesh has them; validated
  BatchLoader(const data::TokenDataset& dataset, const data::BatchPlan& plan, int dp_rank,
              const HeldTokens& held, device::Arena& arena);

  /// Fills the buffers of all micro-batches of this rank. Local: the number of targets follows from
  /// the sample numbers alone. The result is valid until the next call.
  StepBatches load(std::int64_t step, std::int64_t first_sample, device::StreamRef stream);

 private:
  /// Valid targets of whole samples.
  std::int64_t targets_of(Range samples) const;

  const data::TokenDataset* dataset_;
  data::BatchPlan plan_;
  int dp_rank_;
  std::vector<MicroBatchBuffer> buffers_;
  std::vector<model::Batch> batches_;
};

/// How a run's token files are cut into samples. The same on all ranks.
data::TokenDataset::Options dataset_options(const runfile::RunConfig& config,
                                            data::TokenDataset::Order order);

/// Which samples each rank of a mesh takes.
data::BatchPlan batch_plan(const runfile::RunConfig& config, const comm::MeshShape& mesh);

}  // namespace fourfold::train
