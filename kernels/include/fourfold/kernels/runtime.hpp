// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace fourfold::kernels {

/// Starts what the kernels need (Kokkos). One per process, made by main (or the test main) before
/// anything else of the kernels is used and destroyed after all of it. Destroyed while an exception
/// unwinds it leaves a device alone.
class Runtime {
 public:
  /// @param threads  threads per rank for products (and for Kokkos kernels where Kokkos has a
  ///   threaded backend); 0: as the environment says (OMP_NUM_THREADS), else one
  explicit Runtime(int threads = 0);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
};

/// What work of the calling thread that is recorded now (device/graph.hpp) depends on beside its
/// arguments. Once this is another number such work is out of date: memory that kernels of this
/// thread take for themselves has grown, and may have moved, or a product is made another way, by
/// all threads. Never returns to what it was.
std::uint64_t recorded_work_version() noexcept;

/// How much memory kernels of the calling thread have taken for themselves, on all streams.
std::size_t scratch_bytes() noexcept;

/// "Kokkos 3.4.1 (Serial), oneDNN 2.6.3 (AVX2), 1 thread": for logs and reports.
std::string description();

}  // namespace fourfold::kernels
