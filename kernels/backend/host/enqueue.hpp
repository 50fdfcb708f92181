// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How work of the kernels comes onto a stream: on a host it is done at once. (One such file per
/// kind of device; CMake chooses.)
#pragma once

#include <fourfold/device/stream.hpp>

#include <Kokkos_Core.hpp>

namespace fourfold::kernels {

/// Whether what runs over device memory is written for a device, not for a host.
inline constexpr bool is_for_device = false;

/// Where kernels over device memory run, ordered on `stream`.
inline Kokkos::DefaultExecutionSpace execution_space(device::StreamRef /*stream*/) {
  return {};
}

/// Starts `work`, which runs kernels, after all that is on `stream`. It may be copied, and outlive
/// this call: it borrows nothing but device memory.
template <class Work>
void enqueue(device::StreamRef /*stream*/, const Work& work) {
  work();
}

}  // namespace fourfold::kernels
