// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace fourfold::parallel {

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

}  // namespace fourfold::parallel
