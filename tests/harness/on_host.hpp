// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/buffer.hpp>

#include <cstddef>
#include <vector>

namespace fourfold::harness {

/// What is in device memory. Waits for nothing but the copy.
template <class T>
std::vector<T> on_host(const void* data, std::size_t count) {
  std::vector<T> values(count);
  device::copy(values.data(), data, count * sizeof(T), {});
  return values;
}
template <class T>
std::vector<T> on_host(ConstTensorView view) {
  return on_host<T>(view.as<T>(), static_cast<std::size_t>(view.elements()));
}

/// Fills device memory.
template <class T>
void to_device(const std::vector<T>& values, void* data) {
  device::copy(data, values.data(), values.size() * sizeof(T), {});
}

}  // namespace fourfold::harness
