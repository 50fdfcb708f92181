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

  explicit PairTable(std::size_t pairs = 0)
      : slots_(std::bit_ceil(2 * pairs + 2)), seen_(std::bit_ceil(pairs / 4 + 1)) {}

  /// A later merge of the same pair replaces an earlier one. @pre no more than `pairs` different
  /// ones are put in
  void insert(std::int32_t left, std::int32_t right, Merge merge) {
    const std::uint64_t key = key_of(left, right);
    const std::uint64_t hash = mix64(key);
    seen_[word_of(hash)] |= bit_of(hash);
    slots_[place_of(key, hash)] = {key, merge};
  }

  Merge find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key = key_of(left, right);
    const std::uint64_t hash = mix64(key);
    if ((seen_[word_of(hash)] & bit_of(hash)) == 0) {
      return {};
    }
    return slots_[place_of(key, hash)].merge;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Merge merge;
  };

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) noexcept {
    const std::uint64_t high = left;  // the sign that fills its upper half is shifted out
    const std::uint32_t low = right;
    return high << 32 | low;
  }

  /// The slot that holds `key`, or the empty one where it belongs.
  std::size_t place_of(std::uint64_t key, std::uint64_t hash) const noexcept {
    std::size_t place = hash & (slots_.size() - 1);
    while (slots_[place].merge.rank >= 0 && slots_[place].key != key) {
      place = (place + 1) & (slots_.size() - 1);
    }
    return place;
  }

  std::size_t word_of(std::uint64_t hash) const noexcept {
    return (hash >> 32) & (seen_.size() - 1);
  }
  static std::uint64_t bit_of(std::uint64_t hash) noexcept {
    return std::uint64_t{1} << (hash >> 58);
  }

  std::vector<Slot> slots_;
  /// A bit for each pair, of 16 or more: most questions are about pairs that do not merge, and this
  /// answers them from the caches nearby.
  std::vector<std::uint64_t> seen_;
};

}  // namespace fourfold::data::detail
