// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "unicode/utf8.hpp"

#include <fourfold/base/text.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace fourfold::data::detail {

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size()) {
    if (text.size() - end >= 8) {  // eight ASCII characters at once
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + end, sizeof word);
      if ((word & 0x8080808080808080ULL) == 0) {
        end += 8;
        continue;
      }
    }
    const std::size_t bytes = utf8_character_bytes(text.substr(end));
    if (bytes == 0) {
      break;
    }
    end += bytes;
  }
  return end;
}

std::size_t invalid_utf8_prefix(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && utf8_character_bytes(text.substr(end)) == 0) {
    ++end;
  }
  return end;
}

std::size_t begun_utf8_suffix(std::string_view text) {
  for (std::size_t bytes = 1; bytes <= std::min<std::size_t>(3, text.size()); ++bytes) {
    const std::string begun(text.substr(text.size() - bytes));
    const auto lead = static_cast<unsigned char>(begun.front());
    if (lead < 0x80) {
      return 0;
    }
    if (lead < 0xC0) {
      continue;  // inside a character
    }
    const std::size_t whole = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    const auto completes = [&](char filler) {
      return bytes < whole &&
             utf8_character_bytes(begun + std::string(whole - bytes, filler)) == whole;
    };
    return completes('\x80') || completes('\xBF') ? bytes : 0;
  }
  return 0;
}

}  // namespace fourfold::data::detail
