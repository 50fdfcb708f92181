// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How gradients that are summed once per step are cut, and in which order: on all ranks alike.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/model/flat_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fourfold::parallel {

inline constexpr std::int64_t f32_bytes = sizeof(float);

/// Units become complete in an order that a rank's schedule makes, and are reduced in one that all
/// ranks know: a unit that is early waits for those before it.
class FinishingOrder {
 public:
  explicit FinishingOrder(std::vector<int> units) : units_(std::move(units)) {}

  std::size_t units() const noexcept { return units_.size(); }
  int operator[](std::size_t place) const { return units_[place]; }
  /// How many units, from the first, are complete.
  std::size_t complete() const noexcept { return complete_; }

  void add(int unit) {
    early_.push_back(unit);
    while (complete_ < units_.size() && std::erase(early_, units_[complete_]) > 0) {
      ++complete_;
    }
  }
  void restart() {
    early_.clear();
    complete_ = 0;
  }

 private:
  std::vector<int> units_;
  std::vector<int> early_;
  std::size_t complete_ = 0;
};

/// Calls visit(segment, ready_after) for each segment in the order in which they are reduced:
/// matrices as their units finish, a unit's last segment first; then the vectors of all units.
/// ready_after: how many units must be complete; for the vectors one more than there are.
template <class Visit>
void for_each_segment(const std::vector<model::Segment>& segments, const FinishingOrder& order,
                      const Visit& visit) {
  for (std::size_t place = 0; place < order.units(); ++place) {
    for (std::size_t i = segments.size(); i-- > 0;) {
      if (segments[i].unit == order[place]) {
        visit(i, place + 1);
      }
    }
  }
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].unit == model::Segment::every_unit) {
      visit(i, order.units() + 1);
    }
  }
}

/// Calls make(piece) for consecutive pieces of `flat`, of at most `bucket_bytes` in f32.
/// @pre bucket_bytes >= 4
template <class Make>
void for_each_bucket(Range flat, std::int64_t bucket_bytes, const Make& make) {
  const std::int64_t most = bucket_bytes / f32_bytes;
  for (std::int64_t done = 0; done < flat.count; done += most) {
    make(Range{flat.begin + done, std::min(most, flat.count - done)});
  }
}

/// f32 elements that this rank hands to others in an all_reduce of so many, by a ring.
inline std::int64_t all_reduced(std::int64_t elements, const comm::Communicator& ranks) {
  return 2 * (elements - even_part(elements, ranks.size(), ranks.rank()).count);
}

}  // namespace fourfold::parallel
