// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Elements in packs of 16 bytes, the widest access of a device's thread: 4 of f32, 8 of bf16 or
/// f16. Arithmetic is in float.
#pragma once

#include "storage.hpp"

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fourfold::kernels {

inline constexpr std::int64_t pack_bytes = 16;
template <class T>
inline constexpr int pack_elements = pack_bytes / sizeof(T);

/// The numbers of one pack.
template <class T>
using PackOf = float[pack_elements<T>];

// What one instruction reads or writes.
#if defined(__CUDACC__)
using Access16 = uint4;
using Access8 = uint2;
#else
struct alignas(16) Access16 {
  std::uint32_t word[4];
};
using Access8 = std::uint64_t;
#endif

/// How n elements lie in memory, and by what they are accessed.
template <class T, int n>
struct StoredElements {
  T element[n];
};
template <class T, int n>
struct AccessedElements {
  static constexpr std::size_t bytes = n * sizeof(T);
  using Access = std::conditional_t<
      bytes % 16 == 0, Access16,
      std::conditional_t<bytes == 8, Access8,
                         std::conditional_t<bytes == 4, std::uint32_t, std::uint16_t>>>;
  static constexpr int accesses = bytes / sizeof(Access);
  Access access[accesses];
};

/// x = the n elements at `from`. @pre which is aligned to them, or to a pack if they are more
template <int n, class T>
KOKKOS_FORCEINLINE_FUNCTION void load(const T* from, float (&x)[n]) {
  using Accessed = AccessedElements<T, n>;
  using Stored = StoredElements<T, n>;
  Accessed accessed;
  for (int i = 0; i < Accessed::accesses; ++i) {
    accessed.access[i] = reinterpret_cast<const typename Accessed::Access*>(from)[i];
  }
  const auto stored = __builtin_bit_cast(Stored, accessed);
  for (int i = 0; i < n; ++i) {
    x[i] = to_float(stored.element[i]);
  }
}

/// In one instruction: what is only assigned nvcc takes apart now and then.
template <class Access>
KOKKOS_FORCEINLINE_FUNCTION void write_at_once(Access* to, const Access& x) {
#if defined(__CUDA_ARCH__)
  __stwb(to, x);
#else
  *to = x;
#endif
}

/// The n elements at `to` = x. @pre likewise; they are in global memory, not in a team's
template <int n, class T>
KOKKOS_FORCEINLINE_FUNCTION void save(T* to, const float (&x)[n]) {
  StoredElements<T, n> stored;
  if constexpr (n % 2 == 0 && sizeof(T) == 2) {
    for (int i = 0; i < n; i += 2) {
      store_two(stored.element + i, x[i], x[i + 1]);
    }
  } else {
    for (int i = 0; i < n; ++i) {
      store(stored.element[i], x[i]);
    }
  }
  using Accessed = AccessedElements<T, n>;
  const auto accessed = __builtin_bit_cast(Accessed, stored);
  for (int i = 0; i < Accessed::accesses; ++i) {
    write_at_once(reinterpret_cast<typename Accessed::Access*>(to) + i, accessed.access[i]);
  }
}

inline bool is_aligned(const void* data, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

/// Whether load<n> and save<n> may begin at these addresses.
template <int n, class... T>
bool at_packs(const T*... data) {
  return (is_aligned(data, alignof(AccessedElements<T, n>)) && ...);
}

/// The pack at `to` = x. @pre to is aligned to a pack, in global memory
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void store_pack(T* to, const PackOf<T>& x) {
  save<pack_elements<T>>(to, x);
}

/// Whether rows of `features` elements that begin at these addresses all begin with whole packs.
template <class... T>
bool in_packs(std::int64_t features, const T*... rows) {
  return ((features % pack_elements<T> == 0 && is_aligned(rows, pack_bytes)) && ...);
}

}  // namespace fourfold::kernels
