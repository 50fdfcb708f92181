// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace fourfold {

/// What stands for a number that is not finite.
enum class NotFinite { text, null };

/// What Python's json module reads as JSON and the standard does not allow, made standard: numbers
/// that are not finite (NaN, Infinity, -Infinity, and what no double holds, 1e999) become texts of
/// their spelling, so that who uses one finds no number, or null, where a text would be used;
/// halves of surrogate pairs in texts become U+FFFD. All else stays as it is, also what is no JSON
/// at all.
std::string json_from_python(std::string_view text, NotFinite as = NotFinite::text);

}  // namespace fourfold
