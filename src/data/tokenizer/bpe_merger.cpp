// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/bpe_merger.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

namespace fourfold::data::detail {
namespace {

/// Up to so many symbols the best merge is looked for in a row, beyond in a heap: the first is the
/// faster for words, the second for long runs.
constexpr std::uint32_t most_in_a_row = 128;
/// So many are looked at in one instruction. A row is filled up to a whole number of groups.
constexpr std::size_t group_size = 8;
/// Ranks that leave room for a place beside them in 32 bits.
constexpr std::size_t most_ranks_in_a_row = (std::uint32_t{1} << 25) - 1;

}  // namespace

void BpeMerger::merge(std::span<const std::int32_t> row, std::vector<std::int32_t>& ids) {
  if (row.size() <= 1) {
    ids.insert(ids.end(), row.begin(), row.end());
  } else if (row.size() <= most_in_a_row && merges_count_ <= most_ranks_in_a_row) {
    merge_short(row, ids);
  } else {
    merge_long(row, ids);
  }
}

void BpeMerger::merge_short(std::span<const std::int32_t> row,
                            std::vector<std::int32_t>& ids) const {
  constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  const std::size_t length = row.size();
  std::array<std::uint32_t, most_in_a_row> order;  // rank of the merge with the next, then place
  std::array<std::int32_t, most_in_a_row> id;
  std::array<std::int32_t, most_in_a_row> merged;
  std::array<std::uint8_t, most_in_a_row + 1> next;  // length at the end
  std::array<std::uint8_t, most_in_a_row + 1> previous;
  const auto consider_pair = [&](std::size_t place) {
    order[place] = none;
    if (next[place] < length) {
      const PairTable::Merge found = merges_.find(id[place], id[next[place]]);
      merged[place] = found.merged;
      if (found.rank >= 0) {
        order[place] = static_cast<std::uint32_t>(found.rank * most_in_a_row + place);
      }
    }
  };
  for (std::size_t place = 0; place < length; ++place) {
    id[place] = row[place];
    next[place] = static_cast<std::uint8_t>(place + 1);
    previous[place + 1] = static_cast<std::uint8_t>(place);
  }
  for (std::size_t place = 0; place < length; ++place) {
    consider_pair(place);
  }
  std::fill_n(order.begin() + length, (length + group_size - 1) / group_size * group_size - length,
              none);
  for (;;) {
    std::uint32_t best = none;
    for (std::size_t group = 0; group < length; group += group_size) {
      for (std::size_t i = 0; i < group_size; ++i) {
        best = std::min(best, order[group + i]);
      }
    }
    if (best == none) {
      break;
    }
    const std::size_t place = best % most_in_a_row;
    const std::size_t gone = next[place];
    id[place] = merged[place];
    order[gone] = none;
    next[place] = next[gone];
    previous[next[place]] = static_cast<std::uint8_t>(place);
    consider_pair(place);
    if (place > 0) {
      consider_pair(previous[place]);
    }
  }
  for (std::size_t place = 0; place < length; place = next[place]) {
    ids.push_back(id[place]);
  }
}

void BpeMerger::merge_long(std::span<const std::int32_t> row, std::vector<std::int32_t>& ids) {
  const auto length = static_cast<std::int32_t>(row.size());
  symbols_.clear();
  for (std::int32_t i = 0; i < length; ++i) {
    symbols_.push_back({row[i], i - 1, i + 1 < length ? i + 1 : -1});
  }
  candidates_.clear();
  for (std::int32_t i = 0; i < length; ++i) {
    consider(i);
  }
  while (!candidates_.empty()) {
    const Candidate best = candidates_.front();
    std::pop_heap(candidates_.begin(), candidates_.end(), std::greater<>());
    candidates_.pop_back();
    Symbol& left = symbols_[best.position];
    if (left.id < 0 || left.next < 0) {
      continue;  // merged into its left neighbour, or nothing stands right of it any more
    }
    Symbol& right = symbols_[left.next];
    const PairTable::Merge now = merges_.find(left.id, right.id);
    if (now.rank < 0 || now.merged != best.merged) {
      continue;  // one of the two has changed since
    }
    left.id = best.merged;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) {
      symbols_[left.next].previous = best.position;
    }
    if (left.previous >= 0) {
      consider(left.previous);
    }
    consider(best.position);
  }
  for (std::int32_t i = 0; i >= 0; i = symbols_[i].next) {
    ids.push_back(symbols_[i].id);
  }
}

void BpeMerger::consider(std::int32_t position) {
  const Symbol& left = symbols_[position];
  if (left.next < 0) {
    return;
  }
  const PairTable::Merge found = merges_.find(left.id, symbols_[left.next].id);
  if (found.rank >= 0) {
    candidates_.push_back({found.rank, position, found.merged});
    std::push_heap(candidates_.begin(), candidates_.end(), std::greater<>());
  }
}

}  // namespace fourfold::data::detail
