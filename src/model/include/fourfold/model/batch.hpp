// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// One micro-batch, and memory for one. Legend: B sequences, T tokens of each held here, N = B * T
/// rows.
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>

#include <cstdint>

namespace fourfold::model {

/// One micro-batch. All tensors are dense, N rows, sequence after sequence, and are copied by
/// Stage::forward_*: they need to live only until that has run on its stream.
struct Batch {
  std::int64_t sequences = 0;    ///< B, at most StageOptions::sequences
  std::int64_t tokens = 0;       ///< T, at most StageOptions::tokens
  ConstTensorView token_N = {};  ///< i32; needed where unit 0 is
  /// i32, kernels::ignored_target for none; needed where the head is
  ConstTensorView target_N = {};
  /// i32, position of each row in its sequence, the same for each sequence
  ConstTensorView position_N = {};
  ConstTensorView sample_N =
      {};                 ///< i64, global sample number of each row; needed when dropout > 0
  std::int64_t step = 0;  ///< of the run: part of the dropout masks
};

/// Memory for the tensors of micro-batches; absent are those that its owner has no use for.
struct BatchMemory {
  /// What there is besides the positions.
  struct Parts {
    bool token = true;
    bool target = true;
    bool sample = true;
  };
  BatchMemory() = default;
  BatchMemory(device::Arena& arena, device::MemoryUse use, std::int64_t rows, const Parts& parts);

  /// `batch` as it is once it is copied here: without the tensors that it does not have, or that
  /// have no memory here.
  Batch place_of(const Batch& batch) const;
  /// Copies it. @pre its tensors have N rows @return place_of(batch)
  Batch copy(const Batch& batch, device::StreamRef stream) const;

  TensorView token_N;
  TensorView target_N;
  TensorView position_N;
  TensorView sample_N;
};

}  // namespace fourfold::model
