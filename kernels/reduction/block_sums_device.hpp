// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The second pass of sums over rows on a device: the first one leaves a row of sums for each block
/// of rows.
#pragma once

#include "vectors/team_rows_device.hpp"

#include <cstddef>
#include <cstdint>

namespace fourfold::kernels {

/// Of an H100 or H200. Nothing is asked of the device: sums do not depend on which it is.
inline constexpr std::int64_t usual_multiprocessors = 132;

/// add(column, sum over the blocks). A lane has a column; the warps share the blocks, so the order
/// of a sum depends on their number only.
template <class Add>
struct AddBlocks {
  const float* partial_BC;
  std::int64_t blocks;
  int columns;
  Add add;

  static constexpr int device_warps = 32;
  static constexpr int warps = warps_here(device_warps);
  static constexpr std::size_t team_bytes = std::size_t{warps} * warp_lanes * sizeof(float);

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    auto* const sums = team_memory<float>(team, warps * warp_lanes);
    const int lane = RowThreads<device_warps, true>(team).rank();
    const int column = team.league_rank() * warp_lanes + lane;
    float sum = 0;
    if (column < columns) {
      for (std::int64_t block = team.team_rank(); block < blocks; block += warps) {
        sum += partial_BC[block * columns + column];
      }
    }
    sums[team.team_rank() * warp_lanes + lane] = sum;
    team.team_barrier();  // the first warp reads what all have written
    if (team.team_rank() != 0 || column >= columns) {
      return;
    }
    float total = sums[lane];
    for (int warp = 1; warp < warps; ++warp) {
      total += sums[warp * warp_lanes + lane];
    }
    add(column, total);
  }
};

/// Enqueues AddBlocks, where there are blocks.
template <class Add>
void add_blocks(const char* label, const float* partial_BC, std::int64_t blocks, int columns,
                device::StreamRef stream, const Add& add) {
  if (blocks > 0) {
    for_teams<AddBlocks<Add>::device_warps, 1>(label, (columns + warp_lanes - 1) / warp_lanes,
                                               AddBlocks<Add>::team_bytes, stream,
                                               AddBlocks<Add>{partial_BC, blocks, columns, add});
  }
}

}  // namespace fourfold::kernels
