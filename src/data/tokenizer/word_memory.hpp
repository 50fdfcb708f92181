// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/philox.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace fourfold::data::detail {

/// The tokens of words that have been encoded: open addressing, at most half full, each word with
/// its tokens after it in one row of bytes, because most of a text is found here and the two places
/// in memory are what that costs. Forgets everything when it is full: a text whose words do not
/// come back must not fill the memory (10 MB with words of a
/// text, 84 MB with the longest).
class WordMemory {
 public:
  /// Longer words are not remembered.
  static constexpr std::size_t most_bytes = 64;

  /// Eight bytes at a time, the last of them twice where they overlap: most words are shorter than
  /// a call of the library's hash is long. @pre word is not empty
  static std::uint64_t hash_of(std::string_view word) noexcept {
    const char* from = word.data();
    const std::size_t size = word.size();
    std::uint64_t hash = size * 0x9e3779b97f4a7c15ULL;
    if (size < 4) {
      const auto at = [&](std::size_t i) { return load<std::uint8_t>(from + i); };
      return mix64(hash ^ (at(0) | at(size / 2) << 8 | at(size - 1) << 16));
    }
    if (size <= 8) {
      return mix64(hash ^ (load<std::uint32_t>(from) | load<std::uint32_t>(from + size - 4) << 32));
    }
    for (std::size_t i = 0; i + 8 < size; i += 8) {
      hash = mix64(hash ^ load<std::uint64_t>(from + i));
    }
    return mix64(hash ^ load<std::uint64_t>(from + size - 8));
  }

  /// Begins to bring what recall() will look at: the wait for memory is most of its time.
  void prefetch(std::uint64_t hash) const noexcept { __builtin_prefetch(&slots_[first_of(hash)]); }

  /// Appends the tokens of a word and returns true, or returns false for one that is not known.
  /// @pre word is not empty and has at most most_bytes; hash is its hash_of()
  bool recall(std::string_view word, std::uint64_t hash, std::vector<std::int32_t>& ids) const {
    const Slot& slot = slots_[place_of(word, hash)];
    if (slot.bytes == 0) {
      return false;
    }
    const std::size_t before = ids.size();
    ids.resize(before + slot.tokens);
    std::memcpy(ids.data() + before, row_.data() + slot.first + slot.bytes,
                slot.tokens * sizeof(std::int32_t));
    return true;
  }

  /// @pre that of recall(), and the word is not known; no more than 255 tokens, and most_bytes
  /// have two each at most
  void remember(std::string_view word, std::uint64_t hash, const std::int32_t* tokens,
                std::size_t count) {
    if (words_ == most_words) {
      *this = WordMemory();
    }
    ++words_;
    slots_[place_of(word, hash)] = {static_cast<std::uint32_t>(row_.size()), tag_of(hash),
                                    static_cast<std::uint8_t>(word.size()),
                                    static_cast<std::uint8_t>(count)};
    const char* first = reinterpret_cast<const char*>(tokens);
    row_.insert(row_.end(), word.begin(), word.end());
    row_.insert(row_.end(), first, first + count * sizeof(std::int32_t));
  }

 private:
  static constexpr std::size_t most_words = 1 << 18;

  struct Slot {
    std::uint32_t first = 0;
    std::uint16_t tag = 0;   ///< of the hash, what the place has nothing of
    std::uint8_t bytes = 0;  ///< 0: free
    std::uint8_t tokens = 0;
  };
  static_assert(sizeof(Slot) == 8, "eight in a line of the cache");

  template <class Value>
  static std::uint64_t load(const char* from) noexcept {
    Value value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }

  static std::uint16_t tag_of(std::uint64_t hash) noexcept {
    return static_cast<std::uint16_t>(hash >> 48);
  }
  std::size_t first_of(std::uint64_t hash) const noexcept { return hash & (slots_.size() - 1); }

  /// memcmp() without a call, for the words that most are.
  static bool is_same(const char* one, const char* other, std::size_t size) noexcept {
    if (size < 8) {
      for (std::size_t i = 0; i < size; ++i) {
        if (one[i] != other[i]) {
          return false;
        }
      }
      return true;
    }
    for (std::size_t i = 0; i + 8 < size; i += 8) {
      if (load<std::uint64_t>(one + i) != load<std::uint64_t>(other + i)) {
        return false;
      }
    }
    return load<std::uint64_t>(one + size - 8) == load<std::uint64_t>(other + size - 8);
  }

  /// The slot that holds the word, or the free one where it belongs.
  std::size_t place_of(std::string_view word, std::uint64_t hash) const noexcept {
    std::size_t place = first_of(hash);
    for (; slots_[place].bytes != 0; place = (place + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[place];
      if (slot.tag == tag_of(hash) && slot.bytes == word.size() &&
          is_same(row_.data() + slot.first, word.data(), word.size())) {
        break;
      }
    }
    return place;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(2 * most_words);
  std::vector<char> row_;
  std::size_t words_ = 0;
};

}  // namespace fourfold::data::detail
