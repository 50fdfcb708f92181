// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "utf8.hpp"

#include <cstdint>
#include <cstring>

namespace fourfold::data::detail {
namespace {

/// Length of the valid character at the start of non-empty `text`, or 0.
std::size_t character_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80) {
    return 1;
  }
  if (lead < 0xC2 || lead > 0xF4) {
    return 0;
  }
  const std::size_t bytes = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < bytes) {
    return 0;
  }
  const unsigned second_lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned second_highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (at(1) < second_lowest || at(1) > second_highest) {
    return 0;
  }
  for (std::size_t i = 2; i < bytes; ++i) {
    if ((at(i) & 0xC0) != 0x80) {
      return 0;
    }
  }
  return bytes;
}

}  // namespace

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
    const std::size_t bytes = character_bytes(text.substr(end));
    if (bytes == 0) {
      break;
    }
    end += bytes;
  }
  return end;
}

std::size_t invalid_utf8_prefix(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && character_bytes(text.substr(end)) == 0) {
    ++end;
  }
  return end;
}

}  // namespace fourfold::data::detail
