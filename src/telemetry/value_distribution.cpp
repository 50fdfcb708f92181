// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/telemetry/value_distribution.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace fourfold::telemetry {
namespace {

constexpr std::size_t most_different = std::size_t{1} << 16;
constexpr std::uint64_t sign = std::uint64_t{1} << 63;

/// Numbers of IEEE 754 as integers of the same order.
std::uint64_t ordered(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return (bits & sign) != 0 ? ~bits : bits | sign;
}

double number(std::uint64_t ordered) {
  return std::bit_cast<double>((ordered & sign) != 0 ? ordered & ~sign : ~ordered);
}

}  // namespace

void ValueDistribution::add(double value) {
  ++count_;
  if (std::isfinite(value)) {
    add(ordered(value == 0 ? 0 : value), 1);  // -0 is 0
  }
}

void ValueDistribution::add(const ValueDistribution& other) {
  drop_bits(other.dropped_bits_);  // what the other has rounded is not known better here
  for (const auto& [key, times] : other.counts_) {
    add(key << other.dropped_bits_, times);
  }
  count_ += other.count_;
}

void ValueDistribution::add(std::uint64_t ordered, double times) {
  counts_[ordered >> dropped_bits_] += times;
  while (counts_.size() > most_different) {
    drop_bits(dropped_bits_ + 1);
  }
}

/// @param bits  of all that are dropped then; fewer than now change nothing
void ValueDistribution::drop_bits(int bits) {
  if (bits <= dropped_bits_) {
    return;
  }
  std::unordered_map<std::uint64_t, double> merged;
  for (const auto& [key, times] : counts_) {
    merged[key >> (bits - dropped_bits_)] += times;
  }
  counts_ = std::move(merged);
  dropped_bits_ = bits;
}

std::map<double, double> ValueDistribution::buckets() const {
  const std::uint64_t half = dropped_bits_ > 0 ? std::uint64_t{1} << (dropped_bits_ - 1) : 0;
  std::map<double, double> result;
  for (const auto& [key, times] : counts_) {
    result[number((key << dropped_bits_) + half)] += times;
  }
  return result;
}

double ValueDistribution::percentile(double share) const {
  FOURFOLD_EXPECT(share >= 0 && share <= 1);
  double finite = 0;
  for (const auto& [key, times] : counts_) {
    finite += times;
  }
  const double rank = std::max(std::ceil(share * finite), 1.0);
  double below = 0;
  for (const auto& [value, times] : buckets()) {
    below += times;
    if (below >= rank) {
      return value;
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace fourfold::telemetry
