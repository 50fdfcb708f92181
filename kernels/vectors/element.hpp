// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// One element of a tensor whose type is chosen at run time, as the reference bodies read and write
/// it. Slow.
#pragma once

#include "storage.hpp"

#include <fourfold/base/tensor_view.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// @pre dtype is f32, bf16 or f16
inline double read_element(const void* data, DType dtype, std::int64_t index) {
  double value = 0;
  with_storage(dtype,
               [&]<class T>(T) { value = static_cast<float>(static_cast<const T*>(data)[index]); });
  return value;
}

/// Rounds to float, then to the storage format. @pre dtype is f32, bf16 or f16
inline void write_element(void* data, DType dtype, std::int64_t index, double value) {
  with_storage(dtype,
               [&]<class T>(T) { static_cast<T*>(data)[index] = T(static_cast<float>(value)); });
}

inline double read_element(ConstTensorView x, std::int64_t index) {
  return read_element(x.data(), x.dtype(), index);
}

inline void write_element(TensorView x, std::int64_t index, double value) {
  write_element(x.data(), x.dtype(), index, value);
}

}  // namespace fourfold::kernels
