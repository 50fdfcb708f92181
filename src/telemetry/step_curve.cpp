// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "step_statistics.hpp"

#include <fourfold/telemetry/step_curve.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

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
  const auto reach_steps = std::clamp<std::size_t>(static_cast<std::size_t>(steps_) / 100, 2, 50);
  const std::vector<double> smooth =
      running_median(values, (reach_steps + group_steps_ - 1) / group_steps_);
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].y = smooth[i];
  }
  return points;
}

}  // namespace fourfold::telemetry
