// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// One element of a tensor whose type is chosen at run time, as the reference bodies read and write
/// it. Slow.
#pragma once

#include <fourfold/base/contract.hpp>
#include <fourfold/base/dtype.hpp>
#include <fourfold/base/tensor_view.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// @pre dtype is f32, bf16 or f16
inline double read_element(const void* data, DType dtype, std::int64_t index) {
  switch (dtype) {
    case DType::bf16:
      return static_cast<float>(static_cast<const BFloat16*>(data)[index]);
    case DType::f16:
      return static_cast<float>(static_cast<const Float16*>(data)[index]);
    default:
      FOURFOLD_EXPECT(dtype == DType::f32);
      return static_cast<const float*>(data)[index];
  }
}

/// Rounds to float, then to the storage format. @pre dtype is f32, bf16 or f16
inline void write_element(void* data, DType dtype, std::int64_t index, double value) {
  const auto rounded = static_cast<float>(value);
  switch (dtype) {
    case DType::bf16:
      static_cast<BFloat16*>(data)[index] = BFloat16(rounded);
      return;
    case DType::f16:
      static_cast<Float16*>(data)[index] = Float16(rounded);
      return;
    default:
      FOURFOLD_EXPECT(dtype == DType::f32);
      static_cast<float*>(data)[index] = rounded;
  }
}

inline double read_element(ConstTensorView x, std::int64_t index) {
  return read_element(x.data(), x.dtype(), index);
}

inline void write_element(TensorView x, std::int64_t index, double value) {
  write_element(x.data(), x.dtype(), index, value);
}

}  // namespace fourfold::kernels
