// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How work of the kernels comes onto a stream: CUDA's launches do it themselves.
#pragma once

#include <fourfold/device/stream.hpp>

#include <Kokkos_Core.hpp>

namespace fourfold::kernels {

/// Where kernels over device memory run, ordered on `stream`.
inline Kokkos::DefaultExecutionSpace execution_space(device::StreamRef stream) {
  return Kokkos::DefaultExecutionSpace(static_cast<cudaStream_t>(stream.native()));
}

/// Starts `work`, which launches kernels, behind all that is on `stream`.
template <class Work>
void enqueue(device::StreamRef stream, const Work& work) {
  work();
  if (stream == device::StreamRef{}) {
    stream.synchronize();
  }
}

}  // namespace fourfold::kernels
