// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// What a body of reduction.cpp works on.
template <class T>
struct SumOperands {
  const T* x;
  std::int64_t elements;
  double* result;
  bool accumulate;
};

/// The body, of hosts or of devices, which instantiates it for each storage.
template <class T, bool squares>
void sum_elements(const char* label, const SumOperands<T>& with, device::StreamRef stream);

}  // namespace fourfold::kernels
