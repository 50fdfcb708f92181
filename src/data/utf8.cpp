// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "utf8.hpp"

#include <fourfold/base/text.hpp>

#include <cstdint>
#include <cstring>

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

}  // namespace fourfold::data::detail
