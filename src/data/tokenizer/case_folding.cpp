// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/case_folding.hpp"

#include "unicode/unicode_text.hpp"

#include <fourfold/base/contract.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::data::detail {
namespace {

using LongFolding = std::pair<char32_t, std::u32string>;

/// All of them (104 since Unicode 5.1), in the order of the characters.
const std::vector<LongFolding>& long_foldings() {
  static const std::vector<LongFolding> known = [] {
    std::vector<LongFolding> found;
    for (char32_t character = 0x80; character <= 0xFFFF; ++character) {
      std::u32string folded = case_fold(character);
      if (folded.size() > 1) {
        found.emplace_back(character, std::move(folded));
      }
    }
    return found;
  }();
  return known;
}

}  // namespace

std::optional<char32_t> folding_to_several(char32_t first, char32_t last) {
  const auto found = std::lower_bound(
      long_foldings().begin(), long_foldings().end(), first,
      [](const LongFolding& folding, char32_t wanted) { return folding.first < wanted; });
  return found == long_foldings().end() || found->first > last ? std::nullopt
                                                               : std::optional(found->first);
}

std::optional<char32_t> folding_to_end_of(std::u32string_view text) {
  FOURFOLD_EXPECT(!text.empty());
  if (case_fold(text.back()).size() > 1) {
    return text.back();
  }
  std::u32string folded;
  for (const char32_t character : text) {
    folded += case_fold(character);
  }
  for (const auto& [character, long_form] : long_foldings()) {
    if (folded.ends_with(long_form)) {
      return character;
    }
  }
  return std::nullopt;
}

}  // namespace fourfold::data::detail
