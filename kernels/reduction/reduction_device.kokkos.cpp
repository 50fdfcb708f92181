// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Sums over whole tensors on a device: blocks of a fixed size, each summed by a team in f64, then
/// the blocks by one team, each thread some neighbouring ones.
#include "runtime/scratch.hpp"
#include "vectors/storage.hpp"
#include "vectors/team_rows_device.hpp"

#include <fourfold/kernels/reduction.hpp>

#include <algorithm>
#include <cstddef>

namespace fourfold::kernels {
namespace {

/// Part of the numbers: other values round differently.
constexpr std::int64_t elements_per_partial = 65536;
constexpr std::int64_t chunks = 256;
constexpr std::int64_t fewest_in_chunk = 16;

constexpr int sum_warps = 8;
using SumThreads = RowThreads<sum_warps, false, double>;

template <class X, bool squares>
struct PartialSum {
  const X* x;
  double* partial;
  std::int64_t elements;
  bool aligned;

  static constexpr int n = pack_elements<X>;
  static constexpr int step = SumThreads::threads * n;
  static constexpr int packs_ahead = 4;

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    SumThreads threads(team);
    const std::int64_t block = team.league_rank();
    const X* const from = x + block * elements_per_partial;
    const std::int64_t left = elements - block * elements_per_partial;
    const int count = static_cast<int>(left < elements_per_partial ? left : elements_per_partial);
    double sum[1] = {0};
    for (int begin = threads.rank() * n; begin < count; begin += packs_ahead * step) {
      PackWords ahead[packs_ahead];
      FOURFOLD_UNROLL
      for (int k = 0; k < packs_ahead; ++k) {
        const int first = begin + k * step;
        // After the last element there may be no memory.
        ahead[k] = load_part(from, first, count, aligned && first + n <= count);
      }
      FOURFOLD_UNROLL
      for (int k = 0; k < packs_ahead; ++k) {
        double pack_sum = 0;
        FOURFOLD_UNROLL
        for (int i = 0; i < n; ++i) {
          const double value = element_of<X>(ahead[k], i);
          pack_sum += squares ? value * value : value;
        }
        sum[0] += pack_sum;
      }
    }
    threads.sum(sum);
    threads.once([&] { partial[block] = sum[0]; });
  }
};

struct CombinePartials {
  const double* partial;
  std::int64_t blocks;
  std::int64_t in_chunk;
  double* result;
  bool accumulate;

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    SumThreads threads(team);
    double total[1] = {0};
    for (std::int64_t chunk = threads.rank(); chunk < chunks; chunk += SumThreads::threads) {
      const std::int64_t begin = chunk * in_chunk;
      const std::int64_t end = begin + in_chunk < blocks ? begin + in_chunk : blocks;
      double sum = 0;
      for (std::int64_t block = begin; block < end; ++block) {
        sum += partial[block];
      }
      total[0] += sum;
    }
    threads.sum(total);
    threads.once([&] { *result = accumulate ? *result + total[0] : total[0]; });
  }
};

template <bool squares>
void sum_elements(const char* label, ConstTensorView x, TensorView result, bool accumulate,
                  device::StreamRef stream) {
  FOURFOLD_EXPECT(result.elements() == 1);
  const std::int64_t blocks = (x.elements() + elements_per_partial - 1) / elements_per_partial;
  auto* partial = scratch<double>(blocks, stream);
  with_storage(x.dtype(), [&]<class T>(T) {
    for_teams<sum_warps, 4>(label, blocks, SumThreads::team_bytes, stream,
                            PartialSum<T, squares>{x.as<T>(), partial, x.elements(),
                                                   in_packs(pack_elements<T>, x.as<T>())});
  });
  const std::int64_t in_chunk = std::max(fewest_in_chunk, (blocks + chunks - 1) / chunks);
  for_teams<sum_warps, 1>(
      "combine_sums", 1, SumThreads::team_bytes, stream,
      CombinePartials{partial, blocks, in_chunk, result.as<double>(), accumulate});
}

}  // namespace

void sum(ConstTensorView x, TensorView result, bool accumulate, device::StreamRef stream) {
  sum_elements<false>("sum", x, result, accumulate, stream);
}

void sum_of_squares(ConstTensorView x, TensorView result, bool accumulate,
                    device::StreamRef stream) {
  sum_elements<true>("sum_of_squares", x, result, accumulate, stream);
}

}  // namespace fourfold::kernels
