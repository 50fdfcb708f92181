// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "outliers.hpp"

#include <algorithm>
#include <cmath>

namespace fourfold::doctor {

double median(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<std::size_t> slow_ones(std::span<const double> rates) {
  std::vector<std::size_t> slow;
  if (rates.size() < 2) {
    return slow;
  }
  std::vector<double> numbers;
  numbers.reserve(rates.size());
  for (const double rate : rates) {
    numbers.push_back(std::isfinite(rate) && rate > 0 ? rate : 0);
  }
  const double usual = median(numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] <= 0 || numbers[i] < outlier_share * usual) {
      slow.push_back(i);
    }
  }
  return slow;
}

}  // namespace fourfold::doctor
