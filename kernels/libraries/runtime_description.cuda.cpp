// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "attention/attention_backend.hpp"
#include "runtime/threads.hpp"

#include <fourfold/device/device.hpp>
#include <fourfold/kernels/runtime.hpp>

#include <cublasLt.h>
#include <fmt/format.h>

namespace fourfold::kernels {

std::string description() {
  const device::DeviceFacts device = device::device_facts();
  const std::size_t cublas = cublasLtGetVersion();
  return fmt::format("{} (compute capability {}.{}), {}, cuBLASLt {}.{}.{}, {}", device.name,
                     device.compute_capability / 10, device.compute_capability % 10,
                     kokkos_description(), cublas / 10000, cublas % 10000 / 100, cublas % 100,
                     vendor_attention_name());
}

}  // namespace fourfold::kernels
