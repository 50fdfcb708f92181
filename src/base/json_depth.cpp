// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/json_depth.hpp>

#include <cstddef>

namespace fourfold {

bool is_json_deeper_than(int most, std::string_view text) noexcept {
  int depth = 0;
  bool is_in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_text) {
      i += c == '\\' ? 1 : 0;  // whatever follows does not end the text
      is_in_text = c != '"';
    } else if (c == '"') {
      is_in_text = true;
    } else if ((c == '[' || c == '{') && ++depth > most) {
      return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace fourfold
