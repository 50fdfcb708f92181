// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bpe_description.hpp"
#include "pair_table.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fourfold::data::detail {

/// Byte-pair encoding of single words: starting from bytes, the neighbours whose merge ranks best
/// are joined, the leftmost first among equals, until none is left (Sennrich, Haddow, Birch 2016,
/// over bytes as in GPT-2). O(n log n) in the length of a word; words of up to 64 bytes are
/// remembered.
class BpeModel {
 public:
  /// @throws UserError (data_corrupt) when tokens and merges do not fit together
  explicit BpeModel(const BpeDescription& description);

  /// Appends the tokens of the bytes of `word`. @pre word is not empty
  void encode(std::string_view word, std::vector<std::int32_t>& ids);

  /// Largest token number of the vocabulary and of the added tokens, plus one.
  std::int32_t vocab_size() const noexcept { return static_cast<std::int32_t>(bytes_of_.size()); }
  /// The bytes that a token stands for; an added token stands for its text.
  const std::string& bytes_of(std::int32_t id) const {
    return bytes_of_[static_cast<std::size_t>(id)];
  }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  template <class Value>
  using Words = std::unordered_map<std::string, Value, Hash, std::equal_to<>>;

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

  void read_vocabulary(const BpeDescription& description);
  void read_merges(const BpeDescription& description);
  void merge(std::string_view word, std::vector<std::int32_t>& ids);
  void consider(std::int32_t position);

  std::vector<std::string> bytes_of_;
  Words<std::int32_t> whole_words_;  ///< token of a word, when merges are ignored for those
  std::array<std::int32_t, 256> byte_ids_{};
  PairTable merges_;
  Words<std::vector<std::int32_t>> remembered_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;  ///< a heap, best first
};

}  // namespace fourfold::data::detail
