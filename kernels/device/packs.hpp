// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Elements in packs of 16 bytes, the widest access of a device's thread: 4 of f32, 8 of bf16 or
/// f16. Arithmetic is in float.
#pragma once

#include "storage.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace fourfold::kernels {

inline constexpr std::int64_t pack_bytes = 16;
template <class T>
inline constexpr int pack_elements = static_cast<int>(pack_bytes / sizeof(T));

/// The numbers of one pack.
template <class T>
using PackOf = float[pack_elements<T>];

/// How a pack lies in memory.
template <class T>
struct alignas(pack_bytes) StoredPack {
  T element[pack_elements<T>];
};

/// x = the pack at `from`. @pre from is aligned to a pack
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void load_pack(const T* from, PackOf<T>& x) {
  const StoredPack<T> pack = *reinterpret_cast<const StoredPack<T>*>(from);
#pragma unroll
  for (int i = 0; i < pack_elements<T>; ++i) {
    x[i] = to_float(pack.element[i]);
  }
}

/// The pack at `to` = x. @pre to is aligned to a pack
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void store_pack(T* to, const PackOf<T>& x) {
  StoredPack<T> pack;
#pragma unroll
  for (int i = 0; i < pack_elements<T>; ++i) {
    store(pack.element[i], x[i]);
  }
  *reinterpret_cast<StoredPack<T>*>(to) = pack;
}

/// Whether rows of `features` elements that begin at these addresses all begin with whole packs.
template <class... T>
bool in_packs(std::int64_t features, const T*... rows) {
  return ((features % pack_elements<T> == 0 &&
           reinterpret_cast<std::uintptr_t>(rows) % pack_bytes == 0) &&
          ...);
}

}  // namespace fourfold::kernels
