// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "attention/vendor_attention.hpp"
#include "runtime/threads.hpp"

#include <fourfold/device/device.hpp>
#include <fourfold/kernels/runtime.hpp>

#include <cublasLt.h>
#include <fmt/format.h>

namespace fourfold::kernels {

std::string description() {
  const KokkosFacts kokkos = kokkos_facts();
  const device::DeviceFacts device = device::device_facts();
  const std::size_t cublas = cublasLtGetVersion();
  return fmt::format("{} (compute capability {}.{}), Kokkos {}.{}.{} ({}), cuBLASLt {}.{}.{}, {}",
                     device.name, device.compute_capability / 10, device.compute_capability % 10,
                     kokkos.version / 10000, kokkos.version / 100 % 100, kokkos.version % 100,
                     kokkos.execution_space, cublas / 10000, cublas % 10000 / 100, cublas % 100,
                     vendor_attention_name());
}

}  // namespace fourfold::kernels
