// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Tensors of random numbers and their comparison, for the tests that lay a fast body beside its
/// reference.
#pragma once

#include "vectors/storage.hpp"

#include <fourfold/base/philox.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/cross_entropy.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace fourfold::kernels::test {

/// Shapes that are kind to no vector length.
inline constexpr std::int64_t odd_rows[] = {1, 3, 17, 257};
inline constexpr std::int64_t odd_features[] = {1, 7, 64, 129, 768, 1000};

/// 16 bits: one unit in the last place, because the two bodies may round to either side. f32: the
/// arithmetic itself rounds.
inline double tolerance(DType dtype) {
  return dtype == DType::bf16 ? 0x1p-7 : dtype == DType::f16 ? 0x1p-10 : 4e-6;
}

/// Normal numbers times `scale`, plus `shift`; `stream` tells tensors apart.
inline device::Tensor random_tensor(DType dtype, Shape shape, std::uint64_t stream,
                                    double scale = 1, double shift = 0) {
  device::Tensor tensor(dtype, shape);
  const PhiloxKey key = philox_key(11, RandomUse::test, stream);
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    write_element(
        tensor, i,
        scale * static_cast<double>(normal_float(key, static_cast<std::uint64_t>(i))) + shift);
  }
  return tensor;
}

/// Targets spread over the vocabulary; every fifth is ignored.
inline device::Tensor targets(std::int64_t tokens, std::int64_t vocabulary) {
  device::Tensor target(DType::i32, {tokens});
  for (std::int64_t t = 0; t < tokens; ++t) {
    target.as<std::int32_t>()[t] =
        t % 5 == 3 ? ignored_target : static_cast<std::int32_t>((7919 * t + 1) % vocabulary);
  }
  return target;
}

inline device::Tensor copy_of(ConstTensorView view) {
  device::Tensor tensor(view.dtype(), view.shape());
  std::memcpy(tensor.view().data(), view.data(), view.bytes());
  return tensor;
}

/// The same numbers one element further than where memory begins: rows that are not aligned to more
/// than an element.
class Shifted {
 public:
  explicit Shifted(ConstTensorView x) : room_(x.dtype(), {x.elements() + 1}), shape_(x.shape()) {
    std::memcpy(view().data(), x.data(), x.bytes());
  }
  TensorView view() const { return room_.view().rows(1, shape_.elements()).reshape(shape_); }
  operator TensorView() const { return view(); }
  operator ConstTensorView() const { return view(); }

 private:
  device::Tensor room_;
  Shape shape_;
};

inline bool same_bits(ConstTensorView a, ConstTensorView b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

/// Largest |got - want| / (|want| + floor); infinite when one is NaN and the other is not. `floor`
/// is the size below which errors count absolutely: that of the terms that cancel in a result; in
/// f16 at least 2^-14, below which the last place no longer shrinks.
inline double worst_error(ConstTensorView got, ConstTensorView want, double floor) {
  floor = got.dtype() == DType::f16 ? std::max(floor, 0x1p-14) : floor;
  double worst = 0;
  for (std::int64_t i = 0; i < want.elements(); ++i) {
    const double difference = std::fabs(read_element(got, i) - read_element(want, i));
    const double error = difference / (std::fabs(read_element(want, i)) + floor);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

inline std::vector<double> values(ConstTensorView x) {
  std::vector<double> result(static_cast<std::size_t>(x.elements()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = read_element(x, static_cast<std::int64_t>(i));
  }
  return result;
}

/// d loss / d x_i by central differences in double; loss(x) takes and returns double.
template <class Loss>
std::vector<double> finite_differences(std::vector<double> x, const Loss& loss) {
  std::vector<double> gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double step = 1e-5 * std::max(1.0, std::fabs(x[i]));
    const double at = x[i];
    x[i] = at + step;
    const double above = loss(x);
    x[i] = at - step;
    const double below = loss(x);
    x[i] = at;
    gradient[i] = (above - below) / (2 * step);
  }
  return gradient;
}

/// Largest |got - want| / (|want| + 1).
inline double worst_error(ConstTensorView got, const std::vector<double>& want) {
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double error = std::fabs(read_element(got, static_cast<std::int64_t>(i)) - want[i]) /
                         (std::fabs(want[i]) + 1);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

}  // namespace fourfold::kernels::test
