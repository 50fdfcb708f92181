// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace fourfold::benchmarks {

/// Random numbers in device memory, uniform in [low, high): never zeros, which cost less power than
/// what a model computes with, and so are multiplied faster.
device::Tensor random_tensor(DType dtype, Shape shape, float low = -0.5F, float high = 0.5F);
/// i32 in [0, limit).
device::Tensor random_integers(Shape shape, std::int64_t limit);
/// 0, 1, ..., period - 1, 0, ... as i32.
device::Tensor counting_integers(std::int64_t count, std::int64_t period);

/// Sets of operands that take turns: several where one is not much larger than any cache.
template <class Operands>
using Sets = std::shared_ptr<std::vector<Operands>>;

/// @param set_bytes  that a run reads and writes
template <class Make>
auto make_sets(double set_bytes, const Make& make) {
  constexpr double larger_than_caches = 512.0 * (1 << 20);
  constexpr int most = 6;
  auto sets = std::make_shared<std::vector<decltype(make())>>();
  do {
    sets->push_back(make());
  } while (static_cast<double>(sets->size()) * set_bytes < larger_than_caches &&
           sets->size() < most);
  return sets;
}

}  // namespace fourfold::benchmarks
