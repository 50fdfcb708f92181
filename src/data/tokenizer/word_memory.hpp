// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace fourfold::data::detail {

/// The tokens of words that have been encoded: open addressing, at most half full, with words and
/// tokens in a row behind it, because most of a text is found here. Forgets everything when it is
/// full: a text whose words do not come back must not fill the memory (some 20 MB).
class WordMemory {
 public:
  /// Longer words are not remembered.
  static constexpr std::size_t most_bytes = 64;

  /// Appends the tokens of a word and returns true, or returns false for one that is not known.
  /// @pre word has at most most_bytes
  bool recall(std::string_view word, std::vector<std::int32_t>& ids) const {
    const std::uint64_t hash = hash_of(word);
    const Slot& slot = slots_[place_of(word, hash)];
    if (slot.hash == 0) {
      return false;
    }
    const auto tokens = tokens_.begin() + slot.first_token;
    ids.insert(ids.end(), tokens, tokens + slot.tokens);
    return true;
  }

  /// @pre the word is not known; as many tokens as fit 16 bits, which those of most_bytes do
  void remember(std::string_view word, const std::int32_t* tokens, std::size_t count) {
    if (words_ == most_words) {
      *this = WordMemory();
    }
    ++words_;
    const std::uint64_t hash = hash_of(word);
    slots_[place_of(word, hash)] = {
        hash, static_cast<std::uint32_t>(bytes_.size()), static_cast<std::uint32_t>(tokens_.size()),
        static_cast<std::uint16_t>(word.size()), static_cast<std::uint16_t>(count)};
    bytes_.insert(bytes_.end(), word.begin(), word.end());
    tokens_.insert(tokens_.end(), tokens, tokens + count);
  }

 private:
  static constexpr std::size_t most_words = 1 << 17;

  struct Slot {
    std::uint64_t hash = 0;  ///< 0: free
    std::uint32_t first_byte = 0;
    std::uint32_t first_token = 0;
    std::uint16_t bytes = 0;
    std::uint16_t tokens = 0;
  };

  static std::uint64_t hash_of(std::string_view word) noexcept {
    return std::hash<std::string_view>{}(word) | 1;
  }

  /// The slot that holds the word, or the free one where it belongs.
  std::size_t place_of(std::string_view word, std::uint64_t hash) const noexcept {
    std::size_t place = (hash >> 1) & (slots_.size() - 1);
    for (; slots_[place].hash != 0; place = (place + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[place];
      if (slot.hash == hash &&
          std::string_view(bytes_.data() + slot.first_byte, slot.bytes) == word) {
        break;
      }
    }
    return place;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(2 * most_words);
  std::vector<char> bytes_;
  std::vector<std::int32_t> tokens_;
  std::size_t words_ = 0;
};

}  // namespace fourfold::data::detail
