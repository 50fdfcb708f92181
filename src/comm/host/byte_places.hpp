// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Where the parts of a buffer lie, in bytes.
#pragma once

#include <fourfold/base/tensor_view.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace fourfold::comm {

inline const std::byte* at(const void* base, std::int64_t bytes) {
  return static_cast<const std::byte*>(base) + bytes;
}
inline std::byte* at(void* base, std::int64_t bytes) {
  return static_cast<std::byte*>(base) + bytes;
}

inline std::int64_t bytes_of(ConstTensorView view) {
  return static_cast<std::int64_t>(view.bytes());
}

/// Where each part begins that has so many elements.
inline std::vector<std::int64_t> begins_of(std::span<const std::int64_t> counts, DType dtype) {
  std::vector<std::int64_t> begins(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), std::int64_t{0});
  for (std::int64_t& begin : begins) {
    begin *= static_cast<std::int64_t>(size_in_bytes(dtype));
  }
  return begins;
}

}  // namespace fourfold::comm
