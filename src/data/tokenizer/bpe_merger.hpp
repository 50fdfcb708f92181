// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/pair_table.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::data::detail {

/// Joins neighbours of a row of tokens, those whose merge ranks best first, the leftmost among
/// equals, until none is left (Sennrich, Haddow, Birch 2016). O(n log n) in the length of the row.
class BpeMerger {
 public:
  /// @param merges  no more are put in
  explicit BpeMerger(std::size_t merges) : merges_count_(merges), merges_(merges) {}

  void insert(std::int32_t left, std::int32_t right, PairTable::Merge merge) {
    merges_.insert(left, right, merge);
  }

  /// Appends the tokens that `row` becomes; nothing for an empty one.
  void merge(std::span<const std::int32_t> row, std::vector<std::int32_t>& ids);

 private:
  struct Symbol {
    std::int32_t id;
    std::int32_t previous;  ///< -1 at the start
    std::int32_t next;      ///< -1 at the end
  };
  struct Candidate {
    std::int32_t rank;
    std::int32_t position;
    std::int32_t merged;
    bool operator>(const Candidate& other) const noexcept {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };

  void merge_short(std::span<const std::int32_t> row, std::vector<std::int32_t>& ids) const;
  void merge_long(std::span<const std::int32_t> row, std::vector<std::int32_t>& ids);
  void consider(std::int32_t position);

  std::size_t merges_count_;
  PairTable merges_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;  ///< a heap, best first
};

}  // namespace fourfold::data::detail
