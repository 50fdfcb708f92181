// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How work of the kernels comes onto a stream: the bodies of devices, run by the host as late as
/// an emulated device does it (tests/emulation).
#pragma once

#include <fourfold/device/stream.hpp>

#include <Kokkos_Core.hpp>
#include <cuda_check.hpp>
#include <emulated_gpu.hpp>

namespace fourfold::kernels {

/// Whether what runs over device memory is written for a device, not for a host.
inline constexpr bool is_for_device = true;

/// Where kernels over device memory run, ordered on `stream`.
inline Kokkos::DefaultExecutionSpace execution_space(device::StreamRef /*stream*/) {
  return {};
}

/// Starts `work`, which runs kernels, after all that is on `stream`. It may be copied, and outlive
/// this call: it borrows nothing but device memory.
template <class Work>
void enqueue(device::StreamRef stream, const Work& work) {
  emulated::launch(stream.native(), work);
  device::check_cuda(cudaGetLastError(), "cudaLaunchKernel");
  finish_if_default(stream);
}

}  // namespace fourfold::kernels
