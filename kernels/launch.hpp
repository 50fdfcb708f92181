// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How the Kokkos bodies start: functors over raw pointers, one call per row or per block of
/// elements, enqueued on a stream. Functors must be small and trivially copyable, and what a call
/// computes must depend on its index only: then results do not depend on the number of threads.
#pragma once

#include <fourfold/device/stream.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace fourfold::kernels {

/// The default execution space, ordered on `stream`.
inline Kokkos::DefaultExecutionSpace execution_space(device::StreamRef stream) {
#if defined(KOKKOS_ENABLE_CUDA)
  return Kokkos::DefaultExecutionSpace(static_cast<cudaStream_t>(stream.native()));
#else
  static_cast<void>(stream);
  return {};
#endif
}

/// functor(i) for i in [0, count).
template <class Functor>
void for_each(const char* label, std::int64_t count, device::StreamRef stream,
              const Functor& functor) {
  using Policy = Kokkos::RangePolicy<Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(label, Policy(execution_space(stream), 0, count), functor);
}

/// Elements that one call of a for_each_block functor handles: a few pages on a host, where the
/// loop inside vectorises; one 16-byte pack of floats on a device.
inline constexpr std::int64_t elements_per_block =
    std::is_same_v<Kokkos::DefaultExecutionSpace, Kokkos::DefaultHostExecutionSpace> ? 4096 : 4;

template <class Functor>
struct BlockFunctor {
  Functor functor;
  std::int64_t elements;
  KOKKOS_FUNCTION void operator()(std::int64_t block) const {
    const std::int64_t begin = block * elements_per_block;
    const std::int64_t end = begin + elements_per_block;
    functor(begin, end < elements ? end : elements);
  }
};

/// functor(begin, end) over consecutive blocks that cover [0, elements). For functors whose result
/// does not depend on the cut.
template <class Functor>
void for_each_block(const char* label, std::int64_t elements, device::StreamRef stream,
                    const Functor& functor) {
  const std::int64_t blocks = (elements + elements_per_block - 1) / elements_per_block;
  for_each(label, blocks, stream, BlockFunctor<Functor>{functor, elements});
}

}  // namespace fourfold::kernels
