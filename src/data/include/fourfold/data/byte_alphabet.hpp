// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fourfold::data {

/// The alphabet of byte-level BPE, in which GPT-2's vocabulary files spell bytes as printable
/// characters: the bytes 33-126, 161-172 and 174-255 stand for themselves as code points, the other
/// 68 for U+0100, U+0101, ... in order.
///
/// @return the bytes that `spelled` (UTF-8) means, or nothing when a character is not of the
/// alphabet
std::optional<std::string> bytes_of_spelling(std::string_view spelled);

/// The character that stands for a byte.
std::string spelling_of_byte(unsigned char byte);

}  // namespace fourfold::data
