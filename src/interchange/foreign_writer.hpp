// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/interchange/foreign_tensor.hpp>
#include <fourfold/io/tensor_source.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace fourfold::interchange {

/// Makes tensors of other programs out of our masters, some rows at a time, front to back.
class ForeignWriter {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;

  /// @param source  borrowed  @param dtype  f32, bf16 or f16  @param memory_bytes  for all of it
  ForeignWriter(io::TensorSource& source, DType dtype, std::int64_t memory_bytes);

  /// Gives the bytes of the whole tensor to `sink`.
  /// @throws what source throws; UserError (config) naming tensor and value when one overflows
  ///   dtype
  void write(const ForeignTensor& tensor, const Sink& sink);

 private:
  void fill_rows(const ForeignTensor& tensor, const Box& rows);
  void fill(const Part& part, const Box& common, const Box& rows);

  io::TensorSource* source_;
  DType dtype_;
  std::int64_t rows_elements_;
  std::vector<float> rows_;  ///< of their tensor
  std::vector<float> ours_;
  std::vector<std::byte> elements_;
};

}  // namespace fourfold::interchange
