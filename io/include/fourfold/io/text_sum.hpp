// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A text of ours that people may change: with a sum it shows whether they did. Local.
#pragma once

#include <string>
#include <string_view>

namespace fourfold::io {

/// A text with a last line that has the CRC-32C of all before it, as a comment after "#".
std::string with_sum(std::string text);
/// Whether that line is there and fits: nobody has changed anything since.
bool sum_holds(std::string_view text);

}  // namespace fourfold::io
