// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Rows on a device. A team is some warps of lanes, and a row belongs to one warp or to the whole
/// team; its thread `rank` has packs rank, rank + threads, rank + 2 threads ... of it. Sums are
/// taken along a pack, along a thread's packs, across the lanes of a warp and across warps: an
/// order that depends on the length of the row only. Rows that are not whole packs are accessed by
/// elements, in the same places and order, and so give the same bits.
///
/// On a host a team is one thread, which has all packs.
#pragma once

#include "enqueue.hpp"
#include "packs.hpp"
#include "runtime/launch.hpp"
#include "vector_math.hpp"

#include <fourfold/base/contract.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

/// Before a loop over an array that registers are to hold, on a device.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define FOURFOLD_UNROLL _Pragma("unroll")
#else
#define FOURFOLD_UNROLL
#endif

namespace fourfold::kernels {

using RowTeam = Kokkos::TeamPolicy<>::member_type;

inline constexpr int warp_lanes = teams_on_host ? 1 : 32;
/// Warps of a team that is to have so many on a device.
constexpr int warps_here(int warps) {
  return teams_on_host ? 1 : warps;
}

/// functor(team) for `teams` teams of `warps` warps. @tparam resident  teams that a multiprocessor
/// is to hold at a time, which bounds the registers of a thread
template <int warps, int resident, class Functor>
void for_teams(const char* label, std::int64_t teams, std::size_t team_bytes,
               device::StreamRef stream, const Functor& functor) {
  using Policy = Kokkos::TeamPolicy<Kokkos::IndexType<std::int64_t>,
                                    Kokkos::LaunchBounds<32 * warps, resident>>;
  FOURFOLD_EXPECT(teams <= std::numeric_limits<int>::max());
  if (teams == 0) {
    return;
  }
  enqueue(stream, [=] {
    Policy policy(execution_space(stream), static_cast<int>(teams), warps_here(warps), warp_lanes);
    policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(team_bytes)));
    launch(label, policy, functor);
  });
}

// What Kokkos has for the lanes of a warp are loops over a number of lanes that the compiler does
// not know: in CUDA they take several times as many instructions.

/// Which lane of its warp this thread is.
KOKKOS_FORCEINLINE_FUNCTION int lane_of(const RowTeam& team) {
#if defined(__CUDA_ARCH__)
  return static_cast<int>(threadIdx.x);  // as Kokkos lays out a team of vectors
#else
  int lane = 0;
  Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, warp_lanes), [&](int i) { lane = i; });
  return lane;
#endif
}
template <class X>
KOKKOS_FORCEINLINE_FUNCTION X warp_sum(const RowTeam& team, X mine) {
#if defined(__CUDA_ARCH__)
  FOURFOLD_UNROLL
  for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
    mine += __shfl_xor_sync(~0U, mine, distance);
  }
  return mine;
#else
  X sum = 0;
  Kokkos::parallel_reduce(
      Kokkos::ThreadVectorRange(team, warp_lanes), [mine](int /*lane*/, X& x) { x += mine; }, sum);
  return sum;
#endif
}
/// @pre no lane's is NaN
KOKKOS_FORCEINLINE_FUNCTION float warp_largest(const RowTeam& team, float mine) {
#if defined(__CUDA_ARCH__)
  FOURFOLD_UNROLL
  for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
    mine = fmaxf(mine, __shfl_xor_sync(~0U, mine, distance));
  }
  return mine;
#else
  float largest = mine;
  Kokkos::parallel_reduce(
      Kokkos::ThreadVectorRange(team, warp_lanes),
      [mine](int /*lane*/, float& x) { x = mine > x ? mine : x; }, Kokkos::Max<float>(largest));
  return largest;
#endif
}

/// The threads that have a row: one warp of a team, or the whole team of `device_warps` warps.
/// All of them call its functions together, and get the same result. @tparam X  what is summed
template <int device_warps, bool by_warp, class X = float>
class RowThreads {
 public:
  static constexpr int warps = warps_here(device_warps);
  static constexpr int threads = by_warp ? warp_lanes : warps * warp_lanes;
  /// How many sums are taken at a time at most.
  static constexpr int most_sums = 2;
  /// Of the team's memory.
  static constexpr std::size_t team_bytes = by_warp ? 0 : 2 * most_sums * warps * sizeof(X);

  KOKKOS_FORCEINLINE_FUNCTION explicit RowThreads(const RowTeam& team)
      : team_(team), rank_(by_warp ? 0 : team.team_rank() * warp_lanes) {
    if constexpr (!by_warp) {
      slots_ = team_memory<X>(team, 2 * most_sums * warps);
    }
    rank_ += lane_of(team);
  }

  KOKKOS_FORCEINLINE_FUNCTION int rank() const { return rank_; }

  /// x[i] = its sum over the threads.
  template <int sums>
  KOKKOS_FORCEINLINE_FUNCTION void sum(X (&x)[sums]) {
    static_assert(sums <= most_sums);
    for (int i = 0; i < sums; ++i) {
      x[i] = warp_sum(team_, x[i]);
    }
    across_warps(x, [](X a, X b) { return a + b; });
  }

  KOKKOS_FORCEINLINE_FUNCTION float largest(float mine) {
    float x[1] = {warp_largest(team_, mine)};
    across_warps(x, [](float a, float b) { return b > a ? b : a; });
    return x[0];
  }

  /// Once for all threads.
  template <class Body>
  KOKKOS_FORCEINLINE_FUNCTION void once(const Body& body) const {
    if constexpr (by_warp) {
      Kokkos::single(Kokkos::PerThread(team_), body);
    } else {
      Kokkos::single(Kokkos::PerTeam(team_), body);
    }
  }

 private:
  /// Calls take turns with two sets of slots: who writes to one for the next time has passed the
  /// barrier of the call between, which waited for all that read it.
  template <int values, class Combine>
  KOKKOS_FORCEINLINE_FUNCTION void across_warps(X (&x)[values], const Combine& combine) {
    if constexpr (!by_warp && warps > 1) {
      X* const slots = slots_ + turn_ * most_sums * warps;
      Kokkos::single(Kokkos::PerThread(team_), [&] {
        for (int i = 0; i < values; ++i) {
          slots[i * warps + team_.team_rank()] = x[i];
        }
      });
      team_.team_barrier();
      for (int i = 0; i < values; ++i) {
        X all = slots[i * warps];
        for (int warp = 1; warp < warps; ++warp) {
          all = combine(all, slots[i * warps + warp]);
        }
        x[i] = all;
      }
      turn_ = 1 - turn_;
    }
  }

  const RowTeam& team_;
  X* slots_ = nullptr;
  int rank_;
  int turn_ = 0;
};

/// Where thread `rank`'s pack k begins in a row.
template <class T, int threads>
KOKKOS_FORCEINLINE_FUNCTION int first_of_pack(int rank, int k) {
  return (rank + k * threads) * pack_elements<T>;
}

/// A pack as memory holds it, in words, which registers hold.
struct PackWords {
  std::uint32_t word[4] = {};
};

template <class T>
KOKKOS_FORCEINLINE_FUNCTION float element_of(const PackWords& pack, int i) {
  if constexpr (std::is_same_v<T, float>) {
    return float_from_bits(pack.word[i]);
  } else {
    T element;
    element.bits = static_cast<std::uint16_t>(pack.word[i / 2] >> (i % 2 * 16));
    return to_float(element);
  }
}

template <class T>
KOKKOS_FORCEINLINE_FUNCTION void set_element(PackWords& pack, int i, T element) {
  if constexpr (std::is_same_v<T, float>) {
    pack.word[i] = float_bits(element);
  } else {
    pack.word[i / 2] |= static_cast<std::uint32_t>(element.bits) << (i % 2 * 16);
  }
}

/// What memory holds of a pack once it is written.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION PackWords stored_pack(const PackOf<T>& x) {
  PackWords pack;
  FOURFOLD_UNROLL
  for (int i = 0; i < pack_elements<T>; ++i) {
    T element;
    store(element, x[i]);
    set_element(pack, i, element);
  }
  return pack;
}

/// The pack at `first` of a row: zeros where it has no elements. @param whole  as in_packs says;
/// known to the compiler it saves half of the instructions around
template <class T>
KOKKOS_FORCEINLINE_FUNCTION PackWords load_part(const T* row, int first, int columns, bool whole) {
  PackWords pack;
  if (whole) {
    if (first < columns) {
      std::memcpy(&pack, __builtin_assume_aligned(row + first, pack_bytes), pack_bytes);
    }
  } else {
    FOURFOLD_UNROLL
    for (int i = 0; i < pack_elements<T>; ++i) {
      if (first + i < columns) {
        set_element(pack, i, row[first + i]);
      }
    }
  }
  return pack;
}

template <class T>
KOKKOS_FORCEINLINE_FUNCTION void store_part(T* row, int first, int columns, bool whole,
                                            const PackOf<T>& x) {
  if (whole) {
    if (first < columns) {
      store_pack(row + first, x);
    }
  } else {
    FOURFOLD_UNROLL
    for (int i = 0; i < pack_elements<T>; ++i) {
      if (first + i < columns) {
        store(row[first + i], x[i]);
      }
    }
  }
}

/// A thread's packs of a row.
template <int threads, class T, int packs>
KOKKOS_FORCEINLINE_FUNCTION void load_packs(const T* row, int columns, int rank, bool whole,
                                            PackWords (&x)[packs]) {
  FOURFOLD_UNROLL
  for (int k = 0; k < packs; ++k) {
    x[k] = load_part(row, first_of_pack<T, threads>(rank, k), columns, whole);
  }
}

/// e^-x for x >= 0, 0 for infinity, NaN for NaN. The relative error grows with x: 2e-7 + 6e-8 x.
KOKKOS_FORCEINLINE_FUNCTION float fast_exp_minus(float x) {
  return fast_exp2(-1.44269504088896341F * x);
}

}  // namespace fourfold::kernels
