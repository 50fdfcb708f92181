// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/arena.hpp>

#include <numeric>

namespace fourfold::device {

std::string_view name(MemoryUse use) noexcept {
  constexpr std::array<std::string_view, memory_use_count> names{
      "weights", "gradients", "optimizer", "activations", "communication", "workspace"};
  return names[static_cast<std::size_t>(use)];
}

TensorView Arena::take(MemoryUse use, DType dtype, Shape shape) {
  FOURFOLD_EXPECT(!sealed_);
  const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * size_in_bytes(dtype);
  blocks_.emplace_back(bytes);
  bytes_[static_cast<std::size_t>(use)] += bytes;
  return {blocks_.back().data(), dtype, shape};
}

std::size_t Arena::total_bytes() const noexcept {
  return std::accumulate(bytes_.begin(), bytes_.end(), std::size_t{0});
}

}  // namespace fourfold::device
