// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How deep JSON of unknown origin is nested, asked before it is parsed: what copies, compares or
/// prints a parsed value calls itself once per level, and a file of brackets would end the process.
#pragma once

#include <string_view>

namespace fourfold {

/// More than any file of this project, or of those it reads, has.
inline constexpr int most_json_depth = 64;

/// Whether arrays and objects lie in one another more than `most` times. Of text that is no JSON
/// it tells what a parser meets before it finds that out. Reads the text once.
bool is_json_deeper_than(int most, std::string_view text) noexcept;
inline bool is_json_too_deep(std::string_view text) noexcept {
  return is_json_deeper_than(most_json_depth, text);
}

}  // namespace fourfold
