// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Kokkos hands a functor with its policy to CUDA as the argument of a kernel, if the two are
/// small. What is larger goes through constant memory, which is there once: the host waits for the
/// launch before, and none can be recorded in a graph.
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <type_traits>

namespace fourfold::kernels {

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

}  // namespace fourfold::kernels
