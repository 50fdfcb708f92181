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
  for (const Count& each : other.counts_) {
    add(each.key << other.dropped_bits_, each.count);
  }
  for (const Count& each : other.pending_) {
    add(each.key << other.dropped_bits_, each.count);
  }
  count_ += other.count_;
  // What the other has rounded is not known better here.
  if (dropped_bits_ < other.dropped_bits_) {
    sort_values();
    for (Count& each : counts_) {
      each.key >>= other.dropped_bits_ - dropped_bits_;
    }
    dropped_bits_ = other.dropped_bits_;
    counts_ = merged(std::move(counts_));
  }
}

void ValueDistribution::add(std::uint64_t ordered, std::int64_t count) {
  if (pending_.size() == most_different) {
    sort_values();
  }
  pending_.push_back({ordered >> dropped_bits_, count});
}

/// @param counts  of rising keys, some of which are the same
std::vector<ValueDistribution::Count> ValueDistribution::merged(std::vector<Count> counts) {
  std::size_t kept = 0;
  for (std::size_t i = 1; i < counts.size(); ++i) {
    if (counts[i].key == counts[kept].key) {
      counts[kept].count += counts[i].count;
    } else {
      counts[++kept] = counts[i];
    }
  }
  counts.resize(counts.empty() ? 0 : kept + 1);
  return counts;
}

void ValueDistribution::sort_values() {
  std::ranges::sort(pending_, {}, &Count::key);
  const std::ptrdiff_t middle = counts_.size();
  counts_.insert(counts_.end(), pending_.begin(), pending_.end());
  pending_.clear();
  std::ranges::inplace_merge(counts_, counts_.begin() + middle, {}, &Count::key);
  counts_ = merged(std::move(counts_));
  while (counts_.size() > most_different) {
    ++dropped_bits_;
    for (Count& each : counts_) {
      each.key >>= 1U;
    }
    counts_ = merged(std::move(counts_));
  }
}

std::vector<ValueDistribution::Bucket> ValueDistribution::buckets() const {
  ValueDistribution sorted = *this;
  sorted.sort_values();
  const int dropped = sorted.dropped_bits_;
  const std::uint64_t half = dropped > 0 ? std::uint64_t{1} << (dropped - 1) : 0;
  std::vector<Bucket> result;
  result.reserve(sorted.counts_.size());
  for (const Count& each : sorted.counts_) {
    result.push_back({number((each.key << dropped) + half), static_cast<double>(each.count)});
  }
  return result;
}

double ValueDistribution::percentile(double share) const {
  FOURFOLD_EXPECT(share >= 0 && share <= 1);
  const std::vector<Bucket> all = buckets();
  double finite = 0;
  for (const Bucket& bucket : all) {
    finite += bucket.count;
  }
  const double rank = std::max(std::ceil(share * finite), 1.0);
  double below = 0;
  for (const Bucket& bucket : all) {
    below += bucket.count;
    if (below >= rank) {
      return bucket.value;
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace fourfold::telemetry
