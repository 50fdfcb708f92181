// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "external_writer.hpp"

#include <fourfold/base/contract.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace fourfold::model_conversion {
namespace {

/// Elements lie in files at any alignment.
template <class Element>
std::optional<double> widen_all(const std::byte* elements, std::span<float> values) {
  std::optional<double> overflowing;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Element element;
    std::memcpy(&element, elements + i * sizeof element, sizeof element);
    values[i] = static_cast<float>(element);
    if constexpr (std::is_same_v<Element, double>) {
      if (std::isinf(values[i]) && std::isfinite(element)) {
        overflowing = element;
      }
    }
  }
  return overflowing;
}

template <class Element>
std::optional<float> narrow_all(std::span<const float> values, std::byte* elements) {
  std::optional<float> overflowing;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Element element(values[i]);
    if (std::isinf(static_cast<float>(element)) && std::isfinite(values[i])) {
      overflowing = values[i];
    }
    std::memcpy(elements + i * sizeof element, &element, sizeof element);
  }
  return overflowing;
}

}  // namespace

bool is_floating(DType dtype) noexcept {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16 || dtype == DType::f16;
}

std::optional<double> widen(std::span<const std::byte> elements, DType dtype,
                            std::span<float> values) {
  FOURFOLD_EXPECT(is_floating(dtype) && elements.size() == values.size() * size_in_bytes(dtype));
  switch (dtype) {
    case DType::f64:
      return widen_all<double>(elements.data(), values);
    case DType::bf16:
      return widen_all<BFloat16>(elements.data(), values);
    case DType::f16:
      return widen_all<Float16>(elements.data(), values);
    default:
      std::memcpy(values.data(), elements.data(), elements.size());
      return std::nullopt;
  }
}

std::optional<float> narrow(std::span<const float> values, DType dtype,
                            std::span<std::byte> elements) {
  FOURFOLD_EXPECT(elements.size() == values.size() * size_in_bytes(dtype));
  switch (dtype) {
    case DType::bf16:
      return narrow_all<BFloat16>(values, elements.data());
    case DType::f16:
      return narrow_all<Float16>(values, elements.data());
    default:
      FOURFOLD_EXPECT(dtype == DType::f32);
      std::memcpy(elements.data(), values.data(), elements.size());
      return std::nullopt;
  }
}

void transpose(const float* source, std::int64_t rows, std::int64_t columns, float* target,
               std::int64_t target_pitch) {
  constexpr std::int64_t block = 32;  // both sides of a block stay in the first cache
  for (std::int64_t row = 0; row < rows; row += block) {
    const std::int64_t row_end = std::min(row + block, rows);
    for (std::int64_t column = 0; column < columns; column += block) {
      const std::int64_t column_end = std::min(column + block, columns);
      for (std::int64_t i = row; i < row_end; ++i) {
        for (std::int64_t j = column; j < column_end; ++j) {
          target[j * target_pitch + i] = source[i * columns + j];
        }
      }
    }
  }
}

}  // namespace fourfold::model_conversion
