// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What an update leaves beside the masters for products to read.
#pragma once

#include "device/packs.hpp"
#include "storage.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/tensor_view.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

namespace fourfold::kernels {

/// Nothing: the masters themselves are read.
struct NoCopy {
  static bool at_runs() { return true; }
  KOKKOS_FORCEINLINE_FUNCTION void put(std::int64_t /*i*/, float /*master*/) const {}
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void put_run(std::int64_t /*i*/, const float (&/*master*/)[n]) const {
  }
};

/// Masters rounded to the nearest W.
template <class W>
struct NearestCopy {
  W* weight;

  /// Whether runs of as many elements as a pack of f32 has may be written.
  bool at_runs() const { return at_packs<pack_elements<float>>(weight); }
  KOKKOS_FORCEINLINE_FUNCTION void put(std::int64_t i, float master) const {
    store(weight[i], master);
  }
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void put_run(std::int64_t i, const float (&master)[n]) const {
    save<n>(weight + i, master);
  }
};

/// Calls body(copy).
template <class Body>
void with_copy(TensorView weight, const Body& body) {
  if (!weight) {
    body(NoCopy{});
    return;
  }
  with_storage(weight.dtype(), [&]<class W>(W) { body(NearestCopy<W>{weight.as<W>()}); });
}

}  // namespace fourfold::kernels
