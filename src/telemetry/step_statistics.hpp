// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fourfold::telemetry {

/// The smallest value that is at least as large as `share` of all finite ones (nearest rank); NaN
/// without any.
/// @pre 0 <= share <= 1
double percentile(std::span<const double> values, double share);

/// For each place the median of the finite values at most `reach` places away: it follows steps at
/// once and ignores spikes. Places whose own value is not finite stay as they are.
std::vector<double> running_median(std::span<const double> values, std::size_t reach);

}  // namespace fourfold::telemetry
