// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How the Kokkos bodies start: functors over raw pointers, one call per row or per block of
/// elements, enqueued on a stream. Functors must be small (small_functor.hpp), and what a call
/// computes must depend on its index only: then results do not depend on the number of threads.
#pragma once

#include "enqueue.hpp"
#include "small_functor.hpp"

#include <fourfold/device/stream.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace fourfold::kernels {

/// functor(i) for i in [0, count).
template <class Functor>
void for_each(const char* label, std::int64_t count, device::StreamRef stream,
              const Functor& functor) {
  using Policy = Kokkos::RangePolicy<Kokkos::IndexType<std::int64_t>>;
  enqueue(stream, [=] { launch(label, Policy(execution_space(stream), 0, count), functor); });
}

/// Elements that one call of a for_each_block functor handles: a few pages on a host, where the
/// loop inside vectorises; one 16-byte pack of floats on a device.
inline constexpr std::int64_t elements_per_host_block = 4096;
inline constexpr std::int64_t elements_per_block =
    std::is_same_v<Kokkos::DefaultExecutionSpace, Kokkos::DefaultHostExecutionSpace>
        ? elements_per_host_block
        : 4;

template <class Functor, std::int64_t elements_per_block>
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
  for_each(label, blocks, stream, BlockFunctor<Functor, elements_per_block>{functor, elements});
}

/// The same over memory of the host; done when the call returns.
template <class Functor>
void for_each_block_on_host(const char* label, std::int64_t elements, const Functor& functor) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  using Policy = Kokkos::RangePolicy<Host, Kokkos::IndexType<std::int64_t>>;
  const std::int64_t blocks = (elements + elements_per_host_block - 1) / elements_per_host_block;
  const Host host;
  Kokkos::parallel_for(label, Policy(host, 0, blocks),
                       BlockFunctor<Functor, elements_per_host_block>{functor, elements});
  host.fence();
}

}  // namespace fourfold::kernels
