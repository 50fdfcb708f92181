// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <random>
#include <string>
#include <string_view>

namespace fourfold::io {

/// 16 hexadecimal digits that nobody else draws: the name of what several jobs may make in a
/// folder.
inline std::string random_word() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

/// Whether random_word() may have given it. What is swept by its name has such a word in it: no
/// name that a person would give.
inline bool is_random_word(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Whether `name` is `prefix` and such a word.
inline bool is_random_word_after(std::string_view prefix, std::string_view name) {
  return name.starts_with(prefix) && is_random_word(name.substr(prefix.size()));
}

}  // namespace fourfold::io
