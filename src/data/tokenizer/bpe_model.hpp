// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/bpe_description.hpp"
#include "tokenizer/pair_table.hpp"
#include "tokenizer/word_memory.hpp"

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fourfold::data::detail {

/// Byte-pair encoding of words: starting from bytes (byte-level) or characters, the neighbours
/// whose merge ranks best are joined, the leftmost first among equals, until none is left
/// (Sennrich, Haddow, Birch 2016). A character or byte that the vocabulary lacks becomes what the
/// file says: the tokens of its bytes, the unknown token, or nothing. O(n log n) in the length of a
/// word; words of up to 64 bytes are remembered.
///
/// Without a pre-tokenizer a word is a whole document. It is cut where no merge can ever reach
/// across, so that its parts are found among the remembered ones; the tokens are the same.
class BpeModel {
 public:
  /// @throws UserError (data_corrupt) when tokens and merges do not fit together
  explicit BpeModel(const BpeDescription& description);

  /// Appends the tokens of `word`. @pre word is not empty; valid UTF-8 unless byte-level
  /// @throws UserError (config) when something in it is unknown and the unknown token is, too
  void encode(std::string_view word, std::vector<std::int32_t>& ids);

  /// Whether an unbroken run of bytes that are no UTF-8 can be encoded (to the tokens of its
  /// bytes).
  bool takes_any_bytes() const noexcept { return is_byte_level_ || has_all_byte_tokens_; }
  /// Appends the tokens of such a run. @pre takes_any_bytes()
  void encode_bytes(std::string_view bytes, std::vector<std::int32_t>& ids);

  /// How many of the 256 bytes byte-level encoding has no token for.
  int unknown_bytes() const noexcept;
  /// Of the words since the last call of begin_text(): Tokenizer::lost_places()
  std::int64_t lost_places(std::span<const std::int32_t> ids) const;
  void begin_text() noexcept { left_out_ = 0; }

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

  /// Unknown characters in a row that are one unknown token, not yet among the symbols.
  using Unknown = std::optional<std::int32_t>;

  void read_vocabulary(const BpeDescription& description);
  void read_merges(const BpeDescription& description);
  void find_barriers(const BpeDescription& description);
  bool is_barrier(char32_t left, char32_t right) const;
  std::int32_t id_of_character(char32_t character) const;
  void encode_part(std::string_view part, std::vector<std::int32_t>& ids);
  void start(std::string_view part);
  void add_symbol(std::int32_t id);
  void add_known(std::int32_t id, Unknown& unknown);
  void add_unknown(std::string_view spelled, Unknown& unknown);
  bool falls_back(std::string_view spelled) const;
  bool leaves_out(std::string_view spelled) const;
  void merge(std::string_view part, std::vector<std::int32_t>& ids);
  void merge_row(std::vector<std::int32_t>& ids) const;
  void merge_heap(std::vector<std::int32_t>& ids);
  void consider(std::int32_t position);

  bool is_byte_level_;
  bool byte_fallback_;
  bool fuse_unknown_;
  bool has_all_byte_tokens_ = false;   ///< <0x00> to <0xFF>, and they are used
  bool unknown_never_merges_ = false;  ///< what stands for unknown characters is in no merge
  bool leaves_bytes_out_ = false;      ///< byte-level: for some it has nothing at all
  std::int64_t left_out_ = 0;          ///< characters, or bytes
  std::string file_;                   ///< for messages
  std::optional<std::string> unknown_token_;
  std::int32_t unknown_id_ = -1;
  Words<std::int32_t> whole_words_;  ///< token of a word, when merges are ignored for those
  std::array<std::int32_t, 256> byte_ids_{};        ///< byte-level: of each byte, or -1
  std::array<std::int32_t, 256> byte_token_ids_{};  ///< <0x00> to <0xFF>, or -1
  std::vector<std::int32_t> character_ids_;         ///< of the characters up to the largest, or -1
  std::bitset<128 * 128> ascii_joins_;              ///< pairs of characters that a merge may join
  PairTable other_joins_;
  std::size_t merges_count_;
  PairTable merges_;
  WordMemory remembered_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;  ///< a heap, best first
};

}  // namespace fourfold::data::detail
