// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace fourfold::interchange {

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

/// Element (i, j) of a matrix goes to (j, i): `rows` rows of `columns` elements, each row
/// `source_pitch` elements after the one before, to rows that are `target_pitch` apart.
struct Turned {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t source_pitch = 0;
  std::int64_t target_pitch = 0;
};
void transpose(const float* source, float* target, const Turned& turned);

}  // namespace fourfold::interchange
