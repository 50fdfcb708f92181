// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the norms' passes on a device share: which threads take a row.
#pragma once

#include "storage.hpp"
#include "team_rows.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/tensor_view.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace fourfold::kernels {

inline constexpr int norm_warps = 8;

/// A row of at most `packs` packs, in the registers of a warp or of a team.
template <int packs, bool by_warp_>
struct NormRow {
  static constexpr bool by_warp = by_warp_;
  using Threads = RowThreads<norm_warps, by_warp>;
  static constexpr int threads = Threads::threads;
  static constexpr int packs_each = packs / threads;
};

/// What all norms ask of their operands.
inline void expect_rows(ConstTensorView x_TD, ConstTensorView weight_D, ConstTensorView rstd_T) {
  FOURFOLD_EXPECT(x_TD.shape().rank() == 2);
  FOURFOLD_EXPECT(x_TD.dim(1) <= std::numeric_limits<int>::max() / 2);
  FOURFOLD_EXPECT(weight_D.elements() == x_TD.dim(1) && weight_D.dtype() == x_TD.dtype());
  FOURFOLD_EXPECT(rstd_T.elements() == x_TD.dim(0));
}

}  // namespace fourfold::kernels
