// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How the Kokkos bodies start: functors over raw pointers, one call per row or per block of
/// elements, enqueued on a stream. Functors must be small (is_small_functor), and what a call
/// computes must depend on its index only: then results do not depend on the number of threads.
#pragma once

#include "enqueue.hpp"

#include <fourfold/device/stream.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fourfold::kernels {

// Kokkos hands a functor with its policy to CUDA as the argument of a kernel, if the two are
// small. What is larger goes through constant memory, which is there once: the host waits for the
// launch before, and none can be recorded in a graph.

inline constexpr std::size_t kernel_argument_bytes = 512;  ///< less than these, as Kokkos has it
/// Of what goes with a functor, in Kokkos 4.6 and 5.0.
inline constexpr std::size_t range_bytes = 48;
inline constexpr std::size_t teams_bytes = 152;

template <class Policy>
concept OfTeams = requires(const Policy& policy) {
  policy.league_size();
};

template <class Policy, class Functor>
inline constexpr bool is_small_functor =
    std::is_trivially_copyable_v<Functor> &&
    sizeof(Functor) + (OfTeams<Policy> ? teams_bytes : range_bytes) < kernel_argument_bytes;

/// Kokkos::parallel_for for what a device may run.
template <class Policy, class Functor>
void launch(const char* label, const Policy& policy, const Functor& functor) {
  static_assert(is_small_functor<Policy, Functor>);
  Kokkos::parallel_for(label, policy, functor);
}

/// Whether what is started over device memory runs on threads of a host, as on an emulated device:
/// a team has one thread then.
inline constexpr bool teams_on_host =
    std::is_same_v<Kokkos::DefaultExecutionSpace, Kokkos::DefaultHostExecutionSpace>;

/// `count` numbers in the memory of a team.
template <class T, class Team>
KOKKOS_FORCEINLINE_FUNCTION T* team_memory(const Team& team, std::size_t count) {
  return static_cast<T*>(team.team_shmem().get_shmem(count * sizeof(T)));
}

/// functor(i) for i in [0, count).
template <class Functor>
void for_each(const char* label, std::int64_t count, device::StreamRef stream,
              const Functor& functor) {
  using Policy = Kokkos::RangePolicy<Kokkos::IndexType<std::int64_t>>;
  enqueue(stream, [=] { launch(label, Policy(execution_space(stream), 0, count), functor); });
}

/// object(Step(), i) for i in [0, count): for several steps over the same operands.
template <class Step, class Object>
void for_each(const char* label, std::int64_t count, device::StreamRef stream,
              const Object& object) {
  using Policy = Kokkos::RangePolicy<Step, Kokkos::IndexType<std::int64_t>>;
  enqueue(stream, [=] { launch(label, Policy(execution_space(stream), 0, count), object); });
}

/// Elements that one call of a for_each_block functor handles: a few pages, over which the loop
/// inside vectorises.
inline constexpr std::int64_t elements_per_block = 4096;

/// Calls functor(begin, end) of a block.
template <class Functor>
auto over_block(std::int64_t elements, const Functor& functor) {
  return [=](std::int64_t block) {
    const std::int64_t begin = block * elements_per_block;
    functor(begin, std::min(begin + elements_per_block, elements));
  };
}

/// Of hosts: functor(begin, end) over consecutive blocks that cover [0, elements). For functors
/// whose result does not depend on the cut.
template <class Functor>
void for_each_block(const char* label, std::int64_t elements, device::StreamRef stream,
                    const Functor& functor) {
  const std::int64_t blocks = (elements + elements_per_block - 1) / elements_per_block;
  for_each(label, blocks, stream, over_block(elements, functor));
}

/// The same over memory of the host; done when the call returns.
template <class Functor>
void for_each_block_on_host(const char* label, std::int64_t elements, const Functor& functor) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  using Policy = Kokkos::RangePolicy<Host, Kokkos::IndexType<std::int64_t>>;
  const std::int64_t blocks = (elements + elements_per_block - 1) / elements_per_block;
  const Host host;
  Kokkos::parallel_for(label, Policy(host, 0, blocks), over_block(elements, functor));
  host.fence();
}

}  // namespace fourfold::kernels
