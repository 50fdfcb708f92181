// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How work of the kernels comes onto a stream: CUDA's launches do it themselves.
#pragma once

#include "kokkos_errors.hpp"

#include <fourfold/device/stream.hpp>

#include <Kokkos_Core.hpp>

#include <mutex>

namespace fourfold::kernels {

/// Whether what runs over device memory is written for a device, not for a host.
inline constexpr bool is_for_device = true;

/// Where kernels over device memory run, ordered on `stream`. To make one takes memory of the
/// device, which no step may, so each stream has one for good (execution_space.kokkos.cpp).
const Kokkos::DefaultExecutionSpace& execution_space(device::StreamRef stream);

/// For one thread at a time: Kokkos notes without a lock what a kernel needs when it comes first.
std::mutex& launching();

/// Starts `work`, which launches kernels, after all that is on `stream`.
/// @throws SystemError as check_cuda() when a kernel cannot be launched, or an earlier one failed
template <class Work>
void enqueue(device::StreamRef stream, const Work& work) {
  {
    const std::scoped_lock lock(launching());
    with_errors_told("cudaLaunchKernel", work);
  }
  finish_if_default(stream);
}

}  // namespace fourfold::kernels
