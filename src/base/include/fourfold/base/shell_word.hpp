// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace fourfold {

/// `word` as one word of a POSIX shell, whatever is in it: in single quotes, with those in it as
/// '\''.
inline std::string shell_word(std::string_view word) {
  std::string text = "'";
  for (const char c : word) {
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return text + "'";
}

}  // namespace fourfold
