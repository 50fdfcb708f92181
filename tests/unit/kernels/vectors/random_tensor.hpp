// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Inputs and comparisons of the kernel tests.
#pragma once

#include "vectors/storage.hpp"

#include <fourfold/base/dtype.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/device/buffer.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fourfold::test {

inline float element(ConstTensorView x, std::int64_t index) {
  return static_cast<float>(kernels::read_element(x, index));
}

inline void set_element(TensorView x, std::int64_t index, float value) {
  kernels::write_element(x, index, value);
}

/// Uniform in (-1, 1), the same for the same seed.
inline device::Tensor random_tensor(DType dtype, Shape shape, std::uint64_t seed) {
  device::Tensor x(dtype, shape);
  const PhiloxKey key = philox_key(seed, RandomUse::test);
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const float uniform = uniform_float(philox(key, static_cast<std::uint64_t>(i)).word[0]);
    set_element(x, i, 2.0F * uniform - 1.0F);
  }
  return x;
}

inline device::Tensor copy_of(ConstTensorView x) {
  device::Tensor y(x.dtype(), x.shape());
  if (x.bytes() > 0) {
    std::memcpy(y.view().data(), x.data(), x.bytes());
  }
  return y;
}

/// One unit in the last place of a 16-bit number as a share of it, at most: what two bodies may
/// differ by that round nearly the same number.
inline double last_place(DType dtype) {
  return dtype == DType::bf16 ? 0x1p-7 : 0x1p-10;
}

/// Largest difference as a share of the largest magnitude expected; infinite where either is not
/// finite.
inline double difference(ConstTensorView actual, ConstTensorView expected) {
  double largest = 0;
  double magnitude = 1e-30;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    const double e = element(expected, i);
    const double d = std::fabs(element(actual, i) - e);
    if (!std::isfinite(d)) {
      return std::numeric_limits<double>::infinity();
    }
    largest = std::max(largest, d);
    magnitude = std::max(magnitude, std::fabs(e));
  }
  return largest / magnitude;
}

inline bool same_bits(ConstTensorView a, ConstTensorView b) {
  return a.bytes() == b.bytes() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

}  // namespace fourfold::test
