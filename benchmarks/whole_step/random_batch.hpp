// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/buffer.hpp>
#include <fourfold/model/stage.hpp>

#include <cstdint>

namespace fourfold::benchmarks {

/// Micro-batches of random tokens in device memory; the targets are the next tokens. Uniform over
/// the vocabulary: what a look-up and its gradient like least.
class RandomBatch {
 public:
  /// @param vocab  tokens are below it
  /// @param salt   tells the batches of ranks and of a step apart
  RandomBatch(std::int64_t sequences, std::int64_t tokens, std::int64_t vocab, std::uint64_t salt);
  const model::Batch& batch() const noexcept { return batch_; }

 private:
  device::Tensor token_;
  device::Tensor target_;
  device::Tensor position_;
  device::Tensor sample_;
  model::Batch batch_;
};

}  // namespace fourfold::benchmarks
