// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

namespace fourfold::telemetry {

/// How often a number occurred, of any number of them in a few megabytes: for percentiles and
/// histograms of what does not fit into memory.
///
/// Counted are the leading bits of the numbers, in the order of their values: all 64 as long as
/// there are at most 65,536 different numbers, so that every percentile is exact, and of more as
/// many bits as leave so many different ones. Half of the last bit kept is what a percentile can be
/// wrong by; of 5 million step times that all differ and lie between x and 2x, 2^-17 of it.
class ValueDistribution {
 public:
  /// A number that is not finite only counts.
  void add(double value);
  void add(const ValueDistribution& other);

  /// All that were added, also those that are not finite.
  std::int64_t count() const noexcept { return count_; }
  /// How often there were numbers of about this value; finite ones only.
  std::map<double, double> buckets() const;
  /// The smallest value that is at least as large as `share` of all finite ones (nearest rank); NaN
  /// without any.
  /// @pre 0 <= share <= 1
  double percentile(double share) const;

 private:
  void add(std::uint64_t ordered, double times);
  void drop_bits(int bits);

  std::unordered_map<std::uint64_t, double> counts_;  ///< whole numbers, by leading bits
  int dropped_bits_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace fourfold::telemetry
