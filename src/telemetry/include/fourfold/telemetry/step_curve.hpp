// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::telemetry {

struct ChartPoint {
  double x = 0;
  double y = 0;  ///< a value that is not finite interrupts the line and is marked at the top
};

/// A number of every step as a curve that can be drawn, of any number of steps in a megabyte.
///
/// Of up to 16,384 steps it has every point. Of more it has groups of as many steps as leave so
/// many groups: their lowest and highest value, so that spikes stay, and their median.
class StepCurve {
 public:
  static constexpr std::int64_t most_groups = 1 << 14;

  /// @param most_steps  at least as many as will be added
  explicit StepCurve(std::int64_t most_steps);

  void add(std::int64_t step, double value);

  std::int64_t steps() const noexcept { return steps_; }
  /// Lowest and highest value of each group, in the order of their steps; one that is not finite
  /// for the first such of a group. For groups of one: the values.
  std::vector<ChartPoint> values() const;
  /// Running median over the medians of the groups: of a hundredth of the steps, at least 2 and at
  /// most 50 before a place and as many after it, or of one group each where that is more.
  std::vector<ChartPoint> smoothed() const;

 private:
  /// Appends what the group under way has to say.
  void close(std::vector<ChartPoint>& extremes, std::vector<ChartPoint>& medians) const;

  std::size_t group_steps_;
  std::int64_t steps_ = 0;
  std::vector<ChartPoint> group_;  ///< under way
  std::vector<ChartPoint> extremes_;
  std::vector<ChartPoint> medians_;
};

/// The smallest value that is at least as large as `share` of all finite ones (nearest rank); NaN
/// without any.
/// @pre 0 <= share <= 1
double percentile(std::span<const double> values, double share);

/// For each place the median of the finite values at most `reach` places away: it follows steps at
/// once and ignores spikes. Places whose own value is not finite stay as they are.
std::vector<double> running_median(std::span<const double> values, std::size_t reach);

}  // namespace fourfold::telemetry
