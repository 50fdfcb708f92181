// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "svg_chart.hpp"

#include <cstdint>

namespace fourfold::telemetry {
namespace {

/// Bytes of the UTF-8 sequence that `text` begins with if it is one that XML allows, else 0.
std::size_t sequence_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    const bool allowed = first >= 0x20 ? first != 0x7f : first == '\n' || first == '\t';
    return allowed ? 1 : 0;
  }
  const std::size_t bytes = first >= 0xf0 && first < 0xf5   ? 4
                            : first >= 0xe0 && first < 0xf0 ? 3
                            : first >= 0xc2 && first < 0xe0 ? 2
                                                            : 0;
  if (bytes == 0 || bytes > text.size()) {
    return 0;
  }
  std::uint32_t code = first & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) {
      return 0;
    }
    code = code << 6 | (byte(i) & 0x3fU);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  const bool noncharacter = (code & 0xfffeU) == 0xfffe;
  return overlong || surrogate || noncharacter || code > 0x10ffff ? 0 : bytes;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = sequence_bytes(text);
    switch (text.front()) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += bytes == 0 ? "\xef\xbf\xbd" : text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return out;
}

}  // namespace fourfold::telemetry
