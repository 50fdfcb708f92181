// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "enqueue.hpp"
#include "kokkos_errors.hpp"
#include "runtime/launch.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace fourfold::kernels {
namespace {

struct Word {
  std::int64_t word;
  template <class Place>
  KOKKOS_FUNCTION void operator()(const Place& /*place*/) const {}
};
/// Of what this Kokkos makes of a functor, which runtime/launch.hpp has to know.
template <class Policy>
constexpr std::size_t beside_functor = sizeof(Kokkos::Impl::ParallelFor<Word, Policy>) -
                                       sizeof(Word);
static_assert(beside_functor<Kokkos::RangePolicy<Kokkos::IndexType<std::int64_t>>> <= range_bytes);
static_assert(beside_functor<Kokkos::TeamPolicy<Kokkos::IndexType<std::int64_t>>> <= teams_bytes);

}  // namespace

std::mutex& launching() {
  static std::mutex mutex;
  return mutex;
}

const Kokkos::DefaultExecutionSpace& execution_space(device::StreamRef stream) {
  using Space = Kokkos::DefaultExecutionSpace;
  // Never destroyed: Kokkos would give memory back through streams that are gone by then. A stream
  // that begins at the address of one that has ended goes on with its execution space, which knows
  // that address only.
  static auto& mutex = *new std::mutex;
  static auto& spaces = *new std::map<void*, std::unique_ptr<Space>>;
  const std::scoped_lock lock(mutex);
  std::unique_ptr<Space>& space = spaces[stream.native()];
  if (!space) {
    stand_in_for_driver();
    space = std::make_unique<Space>(static_cast<cudaStream_t>(stream.native()));
  }
  return *space;
}

}  // namespace fourfold::kernels
