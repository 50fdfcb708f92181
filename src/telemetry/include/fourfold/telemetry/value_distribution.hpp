// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fourfold::telemetry {

/// How often a number occurred, of any number of them in two megabytes: for percentiles and
/// histograms of what does not fit into memory.
///
/// Counted are the leading bits of the numbers, in the order of their values: all 64 as long as
/// there are at most 65,536 different numbers, so that every percentile is exact, and of more as
/// many bits as leave so many different ones. Half of the last bit kept is what a percentile can be
/// wrong by; of 5 million step times that all differ and lie between x and 2x, 2^-17 of it.
class ValueDistribution {
 public:
  /// Numbers of about the same value.
  struct Bucket {
    double value = 0;
    double count = 0;  ///< a whole number
  };

  /// A number that is not finite only counts.
  void add(double value);
  void add(const ValueDistribution& other);

  /// All that were added, also those that are not finite.
  std::int64_t count() const noexcept { return count_; }
  /// By rising value; finite ones only.
  std::vector<Bucket> buckets() const;
  /// The smallest value that is at least as large as `share` of all finite ones (nearest rank); NaN
  /// without any.
  /// @pre 0 <= share <= 1
  double percentile(double share) const;

 private:
  struct Count {
    std::uint64_t key = 0;  ///< leading bits of an ordered number
    std::int64_t count = 0;
  };
  void add(std::uint64_t ordered, std::int64_t count);
  void sort_values();
  static std::vector<Count> merged(std::vector<Count> counts);

  std::vector<Count> counts_;   ///< by rising key
  std::vector<Count> pending_;  ///< in the order in which they came
  int dropped_bits_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace fourfold::telemetry
