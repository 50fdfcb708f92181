// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace fourfold::data::detail {

/// The longest prefix of `text` that is valid UTF-8 (Unicode table 3-7: no overlong forms, no
/// surrogates, nothing above U+10FFFF), in bytes.
std::size_t valid_utf8_prefix(std::string_view text);

/// The longest prefix in which no valid character begins, in bytes; 0 when `text` begins with one
/// or is empty.
std::size_t invalid_utf8_prefix(std::string_view text);

/// The bytes at the end of `text` with which a character begins that further bytes can complete; 0
/// when there are none.
std::size_t begun_utf8_suffix(std::string_view text);

}  // namespace fourfold::data::detail
