// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/io/tensor_source.hpp>
#include <fourfold/model_conversion/external_tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace fourfold::model_conversion {

/// Makes tensors of other programs out of our masters, some rows at a time, front to back.
class ExternalWriter {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;

  /// @param source  borrowed  @param dtype  f32, bf16 or f16  @param memory_bytes  for all of it
  ExternalWriter(io::TensorSource& source, DType dtype, std::int64_t memory_bytes);

  /// Gives the bytes of the whole tensor to `sink`.
  /// @throws what source throws; UserError (config) naming tensor and value when one overflows
  ///   dtype
  void write(const ExternalTensor& tensor, const Sink& sink);

 private:
  void fill_rows(const ExternalTensor& tensor, const Box& rows);
  void fill(const Part& part, const Box& common, const Box& rows);

  io::TensorSource* source_;
  DType dtype_;
  std::int64_t rows_elements_;
  std::vector<float> rows_;  ///< of their tensor
  std::vector<float> ours_;
  std::vector<std::byte> elements_;
};

/// Types whose elements can be widened: f32, f64, bf16, f16.
bool is_floating(DType dtype) noexcept;

/// `values`, from as many elements of a type that is_floating(); f64 is rounded.
/// @return a finite f64 that overflows f32, if there is one
std::optional<double> widen(std::span<const std::byte> elements, DType dtype,
                            std::span<float> values);

/// The elements of type f32, bf16 or f16 nearest to `values`.
/// @return a finite value that overflows the type, if there is one
std::optional<float> narrow(std::span<const float> values, DType dtype,
                            std::span<std::byte> elements);

/// Element (i, j) of a matrix of `rows` rows and `columns` columns goes to (j, i) of one whose rows
/// are `target_pitch` elements apart.
void transpose(const float* source, std::int64_t rows, std::int64_t columns, float* target,
               std::int64_t target_pitch);

}  // namespace fourfold::model_conversion
