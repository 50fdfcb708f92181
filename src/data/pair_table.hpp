// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/philox.hpp>

#include <bit>
#include <cstdint>
#include <vector>

namespace fourfold::data::detail {

/// From a pair of tokens to the rank of their merge and the token it gives: open addressing, at
/// most half full, because encoding spends most of its time on this question.
class PairTable {
 public:
  struct Merge {
    std::int32_t rank = -1;  ///< -1: these two do not merge
    std::int32_t merged = 0;
  };

  explicit PairTable(std::size_t pairs = 0) : slots_(std::bit_ceil(2 * pairs + 2)) {}

  /// A later merge of the same pair replaces an earlier one. @pre no more than `pairs` different
  /// ones are put in
  void insert(std::int32_t left, std::int32_t right, Merge merge) {
    Slot& slot = slots_[place_of(key_of(left, right))];
    slot = {key_of(left, right), merge};
  }

  Merge find(std::int32_t left, std::int32_t right) const {
    return slots_[place_of(key_of(left, right))].merge;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Merge merge;
  };

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) noexcept {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }

  /// The slot that holds `key`, or the empty one where it belongs.
  std::size_t place_of(std::uint64_t key) const noexcept {
    std::size_t place = mix64(key) & (slots_.size() - 1);
    while (slots_[place].merge.rank >= 0 && slots_[place].key != key) {
      place = (place + 1) & (slots_.size() - 1);
    }
    return place;
  }

  std::vector<Slot> slots_;
};

}  // namespace fourfold::data::detail
