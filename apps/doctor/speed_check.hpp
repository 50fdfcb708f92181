// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check.hpp"
#include "placement_checks.hpp"

#include <fourfold/base/dtype.hpp>
#include <fourfold/comm/communicator.hpp>

#include <span>
#include <vector>

namespace fourfold::doctor {

/// How fast one rank computes while all the others do too.
struct RankSpeed {
  double products_gflops = 0;  ///< matrix products, as the model's linear layers
  double triad_gb_s = 0;       ///< a = b + s c over arrays beyond the caches, as STREAM counts it
  double cores_had = 1;        ///< processor time per second, during the products
};

/// Two windows of `window_s` each, all ranks at once, whatever each gets done in them. Needs
/// kernels::Runtime. Collective.
RankSpeed measure_speed(DType dtype, double window_s, comm::Communicator& world);

/// The better of each figure: what disturbs a rank once does not disturb it always.
RankSpeed better_of(const RankSpeed& a, const RankSpeed& b);

/// Ranks with a figure that stands out.
bool has_slow_ones(std::span<const RankSpeed> speeds);

Check products_check(const Ranks& ranks, std::span<const RankSpeed> speeds, DType dtype);
Check bandwidth_check(const Ranks& ranks, std::span<const RankSpeed> speeds);

}  // namespace fourfold::doctor
