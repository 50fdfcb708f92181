// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The norms' backward pass on a device. A team takes a block of rows, a row per warp or per team:
/// dy and x are read once, and a thread keeps the sums for dweight and dbias of its columns in
/// registers. The blocks' sums are added up in a second pass. How rows are cut depends on their
/// number only.
#include "launch.hpp"
#include "norm_rows.hpp"
#include "scratch.hpp"

#include <fourfold/kernels/norm.hpp>

#include <algorithm>
#include <cstddef>

namespace fourfold::kernels {
namespace {

/// Enough for four teams on each multiprocessor of the largest device there is.
constexpr std::int64_t most_blocks = 528;
constexpr std::int64_t fewest_block_rows = 32;

std::int64_t rows_of_block(std::int64_t rows) {
  const std::int64_t most = most_blocks * fewest_block_rows;
  return fewest_block_rows * std::max<std::int64_t>(1, (rows + most - 1) / most);
}

template <class T>
struct Operands {
  const T* dy_TD;
  const T* x_TD;
  const T* weight_D;
  const float* mean_T;  // nullptr where rows are not centred
  const float* rstd_T;
  T* dx_TD;
  float* partial_BD;  // per block `padded` sums for dweight, then, where centred, as many for dbias
  std::int64_t rows;
  std::int64_t block_rows;
  int features;
  int padded;  // features rounded up to whole packs, of any T
  bool whole;
};

/// What an element needs to know of its row.
struct RowMeans {
  float mean;
  float rstd;
  float g;       // mean of dy * weight
  float g_xhat;  // mean of dy * weight * xhat
};

/// Adds the sums of one pack: dy * weight, and that times x - mean.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void add_pack(const PackWords& dy, const PackWords& x,
                                          const PackWords& weight, float mean, float (&sums)[2]) {
  float g_sum = 0;
  float g_centred_sum = 0;
  FOURFOLD_UNROLL
  for (int i = 0; i < pack_elements<T>; ++i) {
    const float g = element_of<T>(dy, i) * element_of<T>(weight, i);
    g_sum += g;
    g_centred_sum += g * (element_of<T>(x, i) - mean);
  }
  sums[0] += g_sum;
  sums[1] += g_centred_sum;
}

template <bool centred, class Threads>
KOKKOS_FORCEINLINE_FUNCTION RowMeans row_means(Threads& threads, float (&sums)[2], float mean,
                                               float rstd, int features) {
  threads.sum(sums);
  const auto count = static_cast<float>(features);
  return {mean, rstd, centred ? sums[0] / count : 0.0F, sums[1] * rstd / count};
}

/// dx = before + rstd * (g - mean of g - xhat * mean of g * xhat) in the pack at `first`. Calls
/// each(i, dy, xhat) for its elements.
template <class T, class Each>
KOKKOS_FORCEINLINE_FUNCTION void add_gradient(const Operands<T>& with, T* dx_row, int first,
                                              const PackWords& before, const PackWords& dy_pack,
                                              const PackWords& x_pack, const RowMeans& row,
                                              const Each& each) {
  const PackWords weight = load_part(with.weight_D, first, with.features, with.whole);
  PackOf<T> dx;
  FOURFOLD_UNROLL
  for (int i = 0; i < pack_elements<T>; ++i) {
    const float dy = element_of<T>(dy_pack, i);
    const float xhat = (element_of<T>(x_pack, i) - row.mean) * row.rstd;
    each(i, dy, xhat);
    dx[i] = element_of<T>(before, i) +
            row.rstd * (dy * element_of<T>(weight, i) - row.g - xhat * row.g_xhat);
  }
  store_part(dx_row, first, with.features, with.whole, dx);
}

template <class T, bool centred, class Row>
struct NormBackward {
  Operands<T> with;

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
    PackWords dx[packs];  // as it was: a load behind the first store would wait for memory again
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
    for (std::int64_t t = begin + (Row::by_warp ? team.team_rank() : 0); t < end; t += step) {
      take_row(threads, t, total);
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

  KOKKOS_FORCEINLINE_FUNCTION void take_row(Threads& threads, std::int64_t t, Sums& total) const {
    Mine mine;
    load_packs<Row::threads>(with.dy_TD + t * with.features, with.features, threads.rank(),
                             with.whole, mine.dy);
    load_packs<Row::threads>(with.x_TD + t * with.features, with.features, threads.rank(),
                             with.whole, mine.x);
    load_packs<Row::threads>(static_cast<const T*>(with.dx_TD) + t * with.features, with.features,
                             threads.rank(), with.whole, mine.dx);
    mine.mean = centred ? with.mean_T[t] : 0.0F;
    mine.rstd = with.rstd_T[t];
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
                     total[0][k][i] += dy * xhat;
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
      auto* const shared =
          static_cast<float*>(team.team_shmem().get_shmem(shared_floats * sizeof(float)));
      for (int warp = Threads::warps - 1; warp > 0; --warp) {
        if (team.team_rank() == warp) {
          each_shared(shared, rank,
                      [&](float& slot, int s, int k, int i) { slot = total[s][k][i]; });
        }
        team.team_barrier();  // what the warp wrote is read behind it
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

/// The same for rows that registers do not hold: a team per row, which reads it twice, and leaves
/// the weight gradients to another kernel.
template <class T, bool centred>
struct LongNormBackward {
  Operands<T> with;

  using Threads = RowThreads<norm_warps, false>;
  static constexpr int step = Threads::threads * pack_elements<T>;

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    const std::int64_t t = team.league_rank();
    Threads threads(team);
    const T* const dy = with.dy_TD + t * with.features;
    const T* const x = with.x_TD + t * with.features;
    const float mean = centred ? with.mean_T[t] : 0.0F;
    const int begin = threads.rank() * pack_elements<T>;
    float sums[2] = {0, 0};
    for (int first = begin; first < with.features; first += step) {
      add_pack<T>(load(dy, first), load(x, first), load(with.weight_D, first), mean, sums);
    }
    const RowMeans row = row_means<centred>(threads, sums, mean, with.rstd_T[t], with.features);
    for (int first = begin; first < with.features; first += step) {
      add_gradient(with, with.dx_TD + t * with.features, first,
                   load(with.dx_TD + t * with.features, first), load(dy, first), load(x, first),
                   row, [](int /*i*/, float /*dy*/, float /*xhat*/) {});
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION PackWords load(const T* row, int first) const {
    return load_part(row, first, with.features, with.whole);
  }
};

/// Of one block and one column: neighbouring threads read neighbouring columns.
template <class T, bool centred>
struct LongWeightGradient {
  Operands<T> with;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const std::int64_t block = item / with.features;
    const std::int64_t d = item % with.features;
    const std::int64_t begin = block * with.block_rows;
    const std::int64_t left = with.rows - begin;
    const std::int64_t end = begin + (left < with.block_rows ? left : with.block_rows);
    float dweight = 0;
    float dbias = 0;
    for (std::int64_t t = begin; t < end; ++t) {
      const float dy = to_float(with.dy_TD[t * with.features + d]);
      const float mean = centred ? with.mean_T[t] : 0.0F;
      dweight += dy * ((to_float(with.x_TD[t * with.features + d]) - mean) * with.rstd_T[t]);
      dbias += dy;
    }
    float* const to = with.partial_BD + block * (centred ? 2 : 1) * with.padded + d;
    to[0] = dweight;
    if constexpr (centred) {
      to[with.padded] = dbias;
    }
  }
};

/// Adds the blocks' sums to dweight and dbias. A lane has a column; the warps share the blocks.
struct AddBlocks {
  const float* partial_BD;
  float* dweight_D;
  float* dbias_D;
  std::int64_t blocks;
  int columns;  // of partial_BD
  int padded;
  int features;

  static constexpr int device_warps = 32;
  static constexpr int warps = warps_here(device_warps);
  static constexpr std::size_t team_bytes = std::size_t{warps} * warp_lanes * sizeof(float);

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    auto* const sums = static_cast<float*>(team.team_shmem().get_shmem(+team_bytes));
    const int lane = RowThreads<device_warps, true>(team).rank();
    const int column = team.league_rank() * warp_lanes + lane;
    float sum = 0;
    if (column < columns) {
      for (std::int64_t block = team.team_rank(); block < blocks; block += warps) {
        sum += partial_BD[block * columns + column];
      }
    }
    sums[team.team_rank() * warp_lanes + lane] = sum;
    team.team_barrier();  // the first warp reads what all have written
    const int d = column < padded ? column : column - padded;
    if (team.team_rank() != 0 || column >= columns || d >= features) {
      return;
    }
    float total = sums[lane];
    for (int warp = 1; warp < warps; ++warp) {
      total += sums[warp * warp_lanes + lane];
    }
    (column < padded ? dweight_D : dbias_D)[d] += total;
  }
};

template <class T, bool centred, int row_packs, bool by_warp, int resident>
void take_blocks(const char* label, std::int64_t blocks, const Operands<T>& with,
                 device::StreamRef stream) {
  using Body = NormBackward<T, centred, NormRow<row_packs, by_warp>>;
  for_teams<norm_warps, resident>(label, blocks, Body::team_bytes, stream, Body{with});
}

template <class T, bool centred>
void norm_backward(const char* label, Operands<T> with, float* dweight_D, float* dbias_D,
                   device::StreamRef stream) {
  const int packs = (with.features + pack_elements<T> - 1) / pack_elements<T>;
  constexpr int most_pack_elements = 8;
  with.padded = (with.features + most_pack_elements - 1) / most_pack_elements * most_pack_elements;
  with.block_rows = rows_of_block(with.rows);
  const std::int64_t blocks = (with.rows + with.block_rows - 1) / with.block_rows;
  const int columns = (centred ? 2 : 1) * with.padded;
  with.partial_BD = static_cast<float*>(
      scratch(static_cast<std::size_t>(blocks * columns) * sizeof(float), stream));
  if (packs <= 96) {
    take_blocks<T, centred, 96, true, 2>(label, blocks, with, stream);
  } else if (packs <= 128) {
    // Two teams of a multiprocessor have no registers for both sums of 16-bit rows.
    take_blocks<T, centred, 128, true, centred && sizeof(T) == 2 ? 1 : 2>(label, blocks, with,
                                                                          stream);
  } else if (packs <= 256) {
    take_blocks<T, centred, 256, false, 3>(label, blocks, with, stream);
  } else if (packs <= 512) {
    take_blocks<T, centred, 512, false, 2>(label, blocks, with, stream);
  } else if (packs <= 1024) {
    take_blocks<T, centred, 1024, false, 1>(label, blocks, with, stream);
  } else {
    using Body = LongNormBackward<T, centred>;
    for_each("norm_dweight", blocks * with.features, stream, LongWeightGradient<T, centred>{with});
    for_teams<norm_warps, 3>(label, with.rows, Body::Threads::team_bytes, stream, Body{with});
  }
  if (blocks > 0) {
    for_teams<AddBlocks::device_warps, 1>(
        "norm_add_blocks", (columns + warp_lanes - 1) / warp_lanes, AddBlocks::team_bytes, stream,
        AddBlocks{with.partial_BD, dweight_D, dbias_D, blocks, columns, with.padded,
                  with.features});
  }
}

template <class T>
Operands<T> operands(ConstTensorView dy_TD, ConstTensorView x_TD, ConstTensorView weight_D,
                     const float* mean_T, ConstTensorView rstd_T, TensorView dx_TD) {
  Operands<T> with = {};
  with.dy_TD = dy_TD.as<T>();
  with.x_TD = x_TD.as<T>();
  with.weight_D = weight_D.as<T>();
  with.mean_T = mean_T;
  with.rstd_T = rstd_T.as<float>();
  with.dx_TD = dx_TD.as<T>();
  with.rows = x_TD.dim(0);
  with.features = static_cast<int>(x_TD.dim(1));
  with.whole = in_packs(x_TD.dim(1), with.dy_TD, with.x_TD, with.weight_D, with.dx_TD);
  return with;
}

}  // namespace

void layer_norm_backward(ConstTensorView dy_TD, ConstTensorView x_TD, ConstTensorView weight_D,
                         ConstTensorView mean_T, ConstTensorView rstd_T, TensorView dx_TD,
                         TensorView dweight_D, TensorView dbias_D, device::StreamRef stream) {
  expect_rows(x_TD, weight_D, rstd_T);
  FOURFOLD_EXPECT(dy_TD.shape() == x_TD.shape() && dx_TD.shape() == x_TD.shape());
  FOURFOLD_EXPECT(mean_T.elements() == x_TD.dim(0));
  FOURFOLD_EXPECT(dweight_D.elements() == x_TD.dim(1) && dbias_D.elements() == x_TD.dim(1));
  with_storage(x_TD.dtype(), [&]<class T>(T) {
    norm_backward<T, true>("layer_norm_bwd",
                           operands<T>(dy_TD, x_TD, weight_D, mean_T.as<float>(), rstd_T, dx_TD),
                           dweight_D.as<float>(), dbias_D.as<float>(), stream);
  });
}

void rms_norm_backward(ConstTensorView dy_TD, ConstTensorView x_TD, ConstTensorView weight_D,
                       ConstTensorView rstd_T, TensorView dx_TD, TensorView dweight_D,
                       device::StreamRef stream) {
  expect_rows(x_TD, weight_D, rstd_T);
  FOURFOLD_EXPECT(dy_TD.shape() == x_TD.shape() && dx_TD.shape() == x_TD.shape());
  FOURFOLD_EXPECT(dweight_D.elements() == x_TD.dim(1));
  with_storage(x_TD.dtype(), [&]<class T>(T) {
    norm_backward<T, false>("rms_norm_bwd",
                            operands<T>(dy_TD, x_TD, weight_D, nullptr, rstd_T, dx_TD),
                            dweight_D.as<float>(), nullptr, stream);
  });
}

}  // namespace fourfold::kernels
