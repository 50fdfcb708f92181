// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the norms' passes on a device share: which threads take a row.
#pragma once

#include "vectors/team_rows_device.hpp"

namespace fourfold::kernels {

inline constexpr int norm_warps = 8;

/// A row of at most `packs` packs, in the registers of a warp or of a team.
template <int packs, bool by_warp_, int team_warps_ = norm_warps>
struct NormRow {
  static constexpr bool by_warp = by_warp_;
  static constexpr int team_warps = team_warps_;
  using Threads = RowThreads<team_warps, by_warp>;
  static constexpr int threads = Threads::threads;
  static constexpr int packs_each = packs / threads;
};

}  // namespace fourfold::kernels
