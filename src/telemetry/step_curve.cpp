// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/telemetry/step_curve.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

namespace fourfold::telemetry {

StepCurve::StepCurve(std::int64_t most_steps)
    : group_steps_(std::max<std::int64_t>((most_steps + most_groups - 1) / most_groups, 1)) {
  group_.reserve(std::min<std::size_t>(group_steps_, 1 << 16));
}

void StepCurve::add(std::int64_t step, double value) {
  ++steps_;
  group_.push_back({static_cast<double>(step), value});
  if (group_.size() == group_steps_) {
    close(extremes_, medians_);
    group_.clear();
  }
}

void StepCurve::close(std::vector<ChartPoint>& extremes, std::vector<ChartPoint>& medians) const {
  if (group_.empty()) {
    return;
  }
  const ChartPoint* low = nullptr;
  const ChartPoint* high = nullptr;
  const ChartPoint* gap = nullptr;
  std::vector<double> values;
  values.reserve(group_.size());
  for (const ChartPoint& point : group_) {
    values.push_back(point.y);
    if (!std::isfinite(point.y)) {
      gap = gap == nullptr ? &point : gap;
      continue;
    }
    low = low == nullptr || point.y < low->y ? &point : low;
    high = high == nullptr || point.y > high->y ? &point : high;
  }
  std::array<const ChartPoint*, 3> told{low, high == low ? nullptr : high, gap};
  std::ranges::sort(told);
  for (const ChartPoint* const point : told) {
    if (point != nullptr) {
      extremes.push_back(*point);
    }
  }
  medians.push_back({group_[group_.size() / 2].x, percentile(values, 0.5)});
}

std::vector<ChartPoint> StepCurve::values() const {
  std::vector<ChartPoint> points = extremes_;
  std::vector<ChartPoint> unused;
  close(points, unused);
  return points;
}

std::vector<ChartPoint> StepCurve::smoothed() const {
  std::vector<ChartPoint> unused;
  std::vector<ChartPoint> points = medians_;
  close(unused, points);
  std::vector<double> values;
  std::ranges::transform(points, std::back_inserter(values), &ChartPoint::y);
  const auto reach_steps = std::clamp<std::int64_t>(steps_ / 100, 2, 50);
  const std::vector<double> smooth =
      running_median(values, (reach_steps + group_steps_ - 1) / group_steps_);
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].y = smooth[i];
  }
  return points;
}

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
