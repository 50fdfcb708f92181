// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "step_statistics.hpp"

#include <fourfold/base/contract.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace fourfold::telemetry {

double percentile(std::span<const double> values, double share) {
  FOURFOLD_EXPECT(share >= 0 && share <= 1);
  std::vector<double> finite;
  std::ranges::copy_if(values, std::back_inserter(finite),
                       [](double value) { return std::isfinite(value); });
  if (finite.empty()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double rank = std::ceil(share * static_cast<double>(finite.size()));
  const auto index = static_cast<std::ptrdiff_t>(std::max(rank, 1.0)) - 1;
  std::ranges::nth_element(finite, finite.begin() + index);
  return finite[index];
}

std::vector<double> running_median(std::span<const double> values, std::size_t reach) {
  std::vector<double> result;
  result.reserve(values.size());
  for (std::size_t place = 0; place < values.size(); ++place) {
    const std::size_t begin = place - std::min(place, reach);
    const std::size_t end = std::min(place + reach + 1, values.size());
    const double own = values[place];
    result.push_back(std::isfinite(own) ? percentile(values.subspan(begin, end - begin), 0.5)
                                        : own);
  }
  return result;
}

}  // namespace fourfold::telemetry
