// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fourfold::doctor {

/// What is slower than this share of the median stands out.
inline constexpr double outlier_share = 0.8;

/// Of an even number of values the mean of the two in the middle; 0 of none.
double median(std::vector<double> values);

/// Indices of rates (more is better) below outlier_share of the median, ascending. A rate that is
/// no positive number stands out too, unless there is only one. Of two, the slower stands out when
/// it is below two thirds of the other; when more than half are slow nobody can tell by this that
/// they are, and nothing stands out.
std::vector<std::size_t> slow_ones(std::span<const double> rates);

}  // namespace fourfold::doctor
