// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Column sums on a device. A team takes the columns of a pack per lane, of a block of rows that
/// its warps share; the blocks' sums are added up in a second pass. How rows are cut depends on the
/// sizes only.
#include "block_sums_device.hpp"
#include "matmul/gemm.hpp"
#include "runtime/scratch.hpp"
#include "vectors/storage.hpp"

#include <algorithm>
#include <cstddef>

namespace fourfold::kernels {
namespace {

constexpr int sum_warps = 8;
/// Rows whose packs a lane asks for before it adds the first of them.
constexpr int rows_in_flight = 4;
constexpr std::int64_t most_teams = 8 * usual_multiprocessors;

template <class T>
struct SumRows {
  const T* dy_TO;
  std::int64_t dy_row;
  float* partial_BO;
  std::int64_t tokens;
  std::int64_t block_rows;
  int outputs;
  int tiles;
  bool whole;  ///< rows begin and end with whole packs

  static constexpr int n = pack_elements<T>;
  static constexpr int warps = warps_here(sum_warps);
  static constexpr int tile_columns = n * warp_lanes;
  static constexpr std::size_t team_bytes = std::size_t{warps} * tile_columns * sizeof(float);

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    const int tile = static_cast<int>(team.league_rank() % tiles);
    const std::int64_t block = team.league_rank() / tiles;
    const int lane = RowThreads<sum_warps, true>(team).rank();
    PackOf<T> sum = {};
    sum_rows(block, team.team_rank(), tile * tile_columns + lane * n, sum);
    auto* const sums = team_memory<float>(team, warps * tile_columns);
    FOURFOLD_UNROLL
    for (int i = 0; i < n; ++i) {
      sums[(team.team_rank() * n + i) * warp_lanes + lane] = sum[i];
    }
    team.team_barrier();  // every thread reads what all warps have written
    for (int c = team.team_rank() * warp_lanes + lane; c < tile_columns; c += warps * warp_lanes) {
      const int o = tile * tile_columns + c % warp_lanes * n + c / warp_lanes;
      float total = sums[c];
      for (int warp = 1; warp < warps; ++warp) {
        total += sums[warp * tile_columns + c];
      }
      if (o < outputs) {
        partial_BO[block * outputs + o] = total;
      }
    }
  }

  /// Adds every `warps`th row of the block, of the pack at `first`.
  KOKKOS_FORCEINLINE_FUNCTION void sum_rows(std::int64_t block, int warp, int first,
                                            PackOf<T>& sum) const {
    const std::int64_t begin = block * block_rows;
    const std::int64_t end = begin + block_rows < tokens ? begin + block_rows : tokens;
    for (std::int64_t t = begin + warp; t < end; t += rows_in_flight * warps) {
      PackWords x[rows_in_flight];  // zeros after the last row
      FOURFOLD_UNROLL
      for (int k = 0; k < rows_in_flight; ++k) {
        if (t + k * warps < end) {
          x[k] = load_part(dy_TO + (t + k * warps) * dy_row, first, outputs, whole);
        }
      }
      FOURFOLD_UNROLL
      for (int k = 0; k < rows_in_flight; ++k) {
        FOURFOLD_UNROLL
        for (int i = 0; i < n; ++i) {
          sum[i] += element_of<T>(x[k], i);
        }
      }
    }
  }
};

struct AddTo {
  float* sum_O;
  KOKKOS_FUNCTION void operator()(int o, float sum) const { sum_O[o] += sum; }
};

/// Whole turns of a team's warps.
std::int64_t rows_of_block(std::int64_t tokens, int tiles) {
  constexpr std::int64_t turn = sum_warps * rows_in_flight;
  const std::int64_t blocks = std::max<std::int64_t>(1, most_teams / tiles);
  return turn * std::max<std::int64_t>(1, (tokens + blocks * turn - 1) / (blocks * turn));
}

}  // namespace

void add_column_sums(DType dtype, const void* dy_TO, std::int64_t dy_row, float* sum_O,
                     std::int64_t tokens, std::int64_t outputs, device::StreamRef stream) {
  if (tokens == 0 || outputs == 0) {
    return;
  }
  with_storage(dtype, [&]<class T>(T) {
    const auto* const dy = static_cast<const T*>(dy_TO);
    // Of a device, on an emulated one too: the cut is the same.
    constexpr std::int64_t device_tile = 32 * pack_elements<T>;
    const std::int64_t block_rows =
        rows_of_block(tokens, static_cast<int>((outputs + device_tile - 1) / device_tile));
    const std::int64_t blocks = (tokens + block_rows - 1) / block_rows;
    const auto columns = static_cast<int>(outputs);
    const int tiles = (columns + SumRows<T>::tile_columns - 1) / SumRows<T>::tile_columns;
    auto* const partial_BO = scratch<float>(blocks * outputs, stream);
    const bool whole = in_packs(dy_row, dy) && outputs % pack_elements<T> == 0;
    for_teams<sum_warps, 4>(
        "column_sums", blocks * tiles, SumRows<T>::team_bytes, stream,
        SumRows<T>{dy, dy_row, partial_BO, tokens, block_rows, columns, tiles, whole});
    add_blocks("add_column_sums", partial_BO, blocks, columns, stream, AddTo{sum_O});
  });
}

}  // namespace fourfold::kernels
