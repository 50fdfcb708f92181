// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/bpe_description.hpp"
#include "tokenizer/bpe_merger.hpp"
#include "tokenizer/pair_table.hpp"
#include "tokenizer/word_memory.hpp"

#include <algorithm>
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
  std::int64_t unknown_bytes() const noexcept;
  /// Of the words since the last call of begin_text(): Tokenizer::lost_places()
  std::int64_t lost_places(std::span<const std::int32_t> ids) const;
  void begin_text() noexcept {
    left_out_ = 0;
    row_.clear();
    parts_count_ = 0;
    unknown_is_open_ = false;
  }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  template <class Value>
  using Words = std::unordered_map<std::string, Value, Hash, std::equal_to<>>;

  struct Part {
    std::string_view text;
    std::size_t end = 0;  ///< in row_, where the next part begins
    std::uint64_t hash = 0;
    bool may_be_known = false;  ///< hash is that of the text
  };

  void read_vocabulary(const BpeDescription& description);
  void read_merges(const BpeDescription& description);
  void find_barriers(const BpeDescription& description);
  /// Of the characters of most hooks, which are looked up in a table of bits: ASCII, and the mark
  /// that stands for a blank. 255 for others.
  static std::size_t near_number(char32_t character) noexcept {
    constexpr char32_t blank_mark = 0x2581;
    return character < 128 ? character : character == blank_mark ? 128 : 255;
  }
  bool is_barrier(char32_t left, char32_t right) const {
    const std::size_t left_number = near_number(left);
    const std::size_t right_number = near_number(right);
    if (std::max(left_number, right_number) < 255) {
      return !near_joins_[left_number << 8 | right_number];
    }
    return other_joins_.find(left, right).rank < 0;
  }
  std::int32_t id_of_character(char32_t character) const {
    return character < character_ids_.size() ? character_ids_[character] : -1;
  }
  bool falls_back(std::string_view spelled) const;
  void add_known(std::int32_t id) {
    close_unknown();
    row_.push_back(id);
  }
  void add_unknown(std::string_view spelled);
  void close_unknown() {
    if (unknown_is_open_) {
      row_.push_back(unknown_id_);
      unknown_is_open_ = false;
    }
  }
  void end_part(std::string_view text, std::vector<std::int32_t>& ids);
  void encode_parts(std::vector<std::int32_t>& ids);

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
  bool has_barriers_ = true;                        ///< the two below tell what stays apart
  std::bitset<256 * 256> near_joins_;               ///< pairs of characters that a merge may join
  PairTable other_joins_;
  BpeMerger merger_;
  WordMemory remembered_;
  /// Characters that have been read and not been merged, or what stands for them, and the parts
  /// that these are. Several wait together for what the memory of words has of them.
  std::vector<std::int32_t> row_;
  std::array<Part, 16> parts_;
  std::size_t parts_count_ = 0;
  bool unknown_is_open_ = false;  ///< unknown ones in a row that are one token, not yet in row_
};

}  // namespace fourfold::data::detail
