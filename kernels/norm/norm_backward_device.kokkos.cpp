// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The norms' backward pass on a device. A team takes a block of rows, a row per warp or per team:
/// dy and x are read once, and a thread keeps the sums for dweight and dbias of its columns in
/// registers. The blocks' sums are added up in a second pass. How rows are cut depends on their
/// number only.
#include "long_norm_gradient_device.hpp"
#include "norm_gradient_device.hpp"
#include "reduction/block_sums_device.hpp"
#include "runtime/launch.hpp"
#include "runtime/scratch.hpp"

#include <algorithm>
#include <cstddef>

namespace fourfold::kernels {
namespace {

constexpr std::int64_t fewest_block_rows = 32;

/// As many blocks as run at once, where each is long enough: their sums go through memory.
std::int64_t rows_of_block(std::int64_t rows, int resident) {
  constexpr std::int64_t multiple = norm_warps;  // every warp of a team has as many rows
  const std::int64_t blocks = usual_multiprocessors * std::min(resident, 4);
  const std::int64_t even = (rows + blocks - 1) / blocks;
  return std::max(fewest_block_rows, (even + multiple - 1) / multiple * multiple);
}

template <class T, bool whole, bool centred, class Row>
struct NormBackward {
  BlockedRows<T, whole> with;

  using Threads = typename Row::Threads;
  static constexpr int packs = Row::packs_each;
  static constexpr int n = pack_elements<T>;
  static constexpr int sums = centred ? 2 : 1;
  /// Of the team's memory, where its warps add up their sums.
  static constexpr int shared_floats = Row::by_warp ? sums * packs * Row::threads * n : 0;
  static constexpr std::size_t team_bytes = Threads::team_bytes + shared_floats * sizeof(float);

  /// What a thread has of a row.
  struct Mine {
    PackWords dy[packs];
    PackWords x[packs];
    PackWords dx[packs];  // as it was: a load after the first store would wait for memory again
    float mean;
    float rstd;
  };
  /// A thread's sums over rows: dweight, dbias.
  using Sums = float[sums][packs][n];

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    Threads threads(team);
    const std::int64_t begin = team.league_rank() * with.block_rows;
    const std::int64_t left = with.rows - begin;
    const std::int64_t end = begin + (left < with.block_rows ? left : with.block_rows);
    Sums total;
    clear(total);
    const int step = Row::by_warp ? team.team_size() : 1;
    std::int64_t t = begin + (Row::by_warp ? team.team_rank() : 0);
    if constexpr (Row::by_warp) {  // other warps compute while one waits for its row
      for (; t < end; t += step) {
        take_row(threads, t, load_row(threads, t), total);
      }
    } else if (t < end) {
      Mine mine = load_row(threads, t);
      for (; t < end; t += step) {
        const Mine now = mine;
        if (t + step < end) {
          mine = load_row(threads, t + step);
        }
        take_row(threads, t, now, total);
      }
    }
    if constexpr (Row::by_warp) {
      add_across_warps(team, threads.rank(), total);
    }
    if (!Row::by_warp || team.team_rank() == 0) {
      write_sums(team.league_rank(), threads.rank(), total);
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION static void clear(Sums& total) {
    FOURFOLD_UNROLL
    for (int s = 0; s < sums; ++s) {
      FOURFOLD_UNROLL
      for (int k = 0; k < packs; ++k) {
        FOURFOLD_UNROLL
        for (int i = 0; i < n; ++i) {
          total[s][k][i] = 0;
        }
      }
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION static int first_of(int rank, int k) {
    return first_of_pack<T, Row::threads>(rank, k);
  }

  KOKKOS_FORCEINLINE_FUNCTION Mine load_row(const Threads& threads, std::int64_t t) const {
    Mine mine;
    load_packs<Row::threads>(with.dy_TD + t * with.features, with.features, threads.rank(),
                             with.whole, mine.dy);
    load_packs<Row::threads>(with.x_TD + t * with.features, with.features, threads.rank(),
                             with.whole, mine.x);
    load_packs<Row::threads>(static_cast<const T*>(with.dx_TD) + t * with.features, with.features,
                             threads.rank(), with.whole, mine.dx);
    mine.mean = centred ? with.mean_T[t] : 0.0F;
    mine.rstd = with.rstd_T[t];
    return mine;
  }

  KOKKOS_FORCEINLINE_FUNCTION void take_row(Threads& threads, std::int64_t t, const Mine& mine,
                                            Sums& total) const {
    float row_sums[2] = {0, 0};
    FOURFOLD_UNROLL
    for (int k = 0; k < packs; ++k) {
      const PackWords weight =
          load_part(with.weight_D, first_of(threads.rank(), k), with.features, with.whole);
      add_pack<T>(mine.dy[k], mine.x[k], weight, mine.mean, row_sums);
    }
    const RowMeans row = row_means<centred>(threads, row_sums, mine.mean, mine.rstd, with.features);
    FOURFOLD_UNROLL
    for (int k = 0; k < packs; ++k) {
      add_gradient(with, with.dx_TD + t * with.features, first_of(threads.rank(), k), mine.dx[k],
                   mine.dy[k], mine.x[k], row, [&](int i, float dy, float xhat) {
                     total[0][k][i] = multiply_add(dy, xhat, total[0][k][i]);
                     if constexpr (centred) {
                       total[1][k][i] += dy;
                     }
                   });
    }
  }

  /// Leaves in the first warp the sum over all warps, in their order.
  KOKKOS_FORCEINLINE_FUNCTION void add_across_warps(const RowTeam& team, int rank,
                                                    Sums& total) const {
    if constexpr (Threads::warps > 1) {
      auto* const shared = team_memory<float>(team, shared_floats);
      for (int warp = Threads::warps - 1; warp > 0; --warp) {
        if (team.team_rank() == warp) {
          each_shared(shared, rank,
                      [&](float& slot, int s, int k, int i) { slot = total[s][k][i]; });
        }
        team.team_barrier();  // what the warp wrote is read after it
        if (team.team_rank() == warp - 1) {
          each_shared(shared, rank,
                      [&](float& slot, int s, int k, int i) { total[s][k][i] += slot; });
        }
        // The next one to write is the warp that has just read, each lane its own slots.
      }
    }
  }

  /// A lane's slots lie beside those of its neighbours.
  template <class Body>
  KOKKOS_FORCEINLINE_FUNCTION static void each_shared(float* shared, int rank, const Body& body) {
    FOURFOLD_UNROLL
    for (int s = 0; s < sums; ++s) {
      FOURFOLD_UNROLL
      for (int k = 0; k < packs; ++k) {
        FOURFOLD_UNROLL
        for (int i = 0; i < n; ++i) {
          body(shared[((s * packs + k) * n + i) * Row::threads + rank], s, k, i);
        }
      }
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void write_sums(std::int64_t block, int rank,
                                              const Sums& total) const {
    FOURFOLD_UNROLL
    for (int s = 0; s < sums; ++s) {
      float* const to = with.partial_BD + (block * sums + s) * with.padded;
      FOURFOLD_UNROLL
      for (int k = 0; k < packs; ++k) {
        const int first = first_of(rank, k);
        if (first < with.features) {
          FOURFOLD_UNROLL
          for (int i = 0; i < n; i += pack_elements<float>) {
            PackOf<float> part;
            FOURFOLD_UNROLL
            for (int j = 0; j < pack_elements<float>; ++j) {
              part[j] = total[s][k][i + j];
            }
            store_pack(to + first + i, part);
          }
        }
      }
    }
  }
};

/// Of a block's sums, to dweight and dbias.
struct AddGradients {
  float* dweight_D;
  float* dbias_D;
  int padded;
  int features;

  KOKKOS_FUNCTION void operator()(int column, float sum) const {
    const int d = column < padded ? column : column - padded;
    if (d < features) {
      (column < padded ? dweight_D : dbias_D)[d] += sum;
    }
  }
};

/// Cuts rows into blocks for start(rows cut so, number of blocks), and adds up the sums they leave.
template <bool whole, bool centred, class T, class Start>
void in_blocks(const NormBackwardOperands<T>& of, int resident, device::StreamRef stream,
               const Start& start) {
  constexpr int most_pack_elements = 8;
  const int padded =
      (of.features + most_pack_elements - 1) / most_pack_elements * most_pack_elements;
  const std::int64_t block_rows = rows_of_block(of.rows, resident);
  const std::int64_t blocks = (of.rows + block_rows - 1) / block_rows;
  const int columns = (centred ? 2 : 1) * padded;
  auto* const partial_BD = scratch<float>(blocks * columns, stream);
  start(BlockedRows<T, whole>{of, padded, partial_BD, block_rows}, blocks);
  add_blocks("norm_add_blocks", partial_BD, blocks, columns, stream,
             AddGradients{of.dweight_D, of.dbias_D, padded, of.features});
}

template <bool whole, bool centred, class Row, int resident, class T>
void take_blocks(const char* label, const NormBackwardOperands<T>& of, device::StreamRef stream) {
  using Body = NormBackward<T, whole, centred, Row>;
  in_blocks<whole, centred>(
      of, resident, stream, [&](const BlockedRows<T, whole>& with, std::int64_t blocks) {
        for_teams<Row::team_warps, resident>(label, blocks, Body::team_bytes, stream, Body{with});
      });
}

template <bool whole, bool centred, class T>
void take_long_rows(const char* label, const NormBackwardOperands<T>& of,
                    device::StreamRef stream) {
  using Body = LongNormBackward<T, whole, centred>;
  in_blocks<whole, centred>(
      of, 4, stream, [&](const BlockedRows<T, whole>& with, std::int64_t blocks) {
        for_each("norm_dweight", blocks * of.features, stream,
                 LongWeightGradient<T, whole, centred>{with});
        for_teams<norm_warps, 3>(label, of.rows, Body::Threads::team_bytes, stream, Body{with});
      });
}

template <bool whole, bool centred, class T>
void norm_backward(const char* label, const NormBackwardOperands<T>& of, device::StreamRef stream) {
  const int packs = (of.features + pack_elements<T> - 1) / pack_elements<T>;
  if (packs <= 96) {
    take_blocks<whole, centred, NormRow<96, true>, 2>(label, of, stream);
  } else if (packs <= 128) {  // a warp has no registers for both sums of a row of 16 bits
    take_blocks<whole, centred, NormRow<128, false, 4>, 6>(label, of, stream);
  } else if (packs <= 256) {
    take_blocks<whole, centred, NormRow<256, false>, 3>(label, of, stream);
  } else if (packs <= 512) {
    take_blocks<whole, centred, NormRow<512, false>, 2>(label, of, stream);
  } else if (packs <= 1024) {
    take_blocks<whole, centred, NormRow<1024, false>, 1>(label, of, stream);
  } else {
    take_long_rows<whole, centred>(label, of, stream);
  }
}

}  // namespace

template <class T>
void norm_rows_backward(const char* label, const NormBackwardOperands<T>& of,
                        device::StreamRef stream) {
  const bool whole = in_packs(of.features, of.dy_TD, of.x_TD, of.weight_D, of.dx_TD);
  if (of.mean_T != nullptr) {
    whole ? norm_backward<true, true>(label, of, stream)
          : norm_backward<false, true>(label, of, stream);
  } else {
    whole ? norm_backward<true, false>(label, of, stream)
          : norm_backward<false, false>(label, of, stream);
  }
}
template void norm_rows_backward(const char*, const NormBackwardOperands<float>&,
                                 device::StreamRef);
template void norm_rows_backward(const char*, const NormBackwardOperands<BFloat16>&,
                                 device::StreamRef);
template void norm_rows_backward(const char*, const NormBackwardOperands<Float16>&,
                                 device::StreamRef);

}  // namespace fourfold::kernels
