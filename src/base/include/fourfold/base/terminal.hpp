// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What programs say comes in part from files, from other programs and from hosts. All of it goes
/// to standard error through log::write_stderr() and draw_stderr(), and to standard output through
/// program/print.hpp, which let no character through that a terminal obeys.
#pragma once

#include <string>
#include <string_view>

namespace fourfold {

/// As printable() of base/text.hpp, for whole lines: line feeds and tabs stay. JSON and basic
/// strings of TOML keep their meaning: what is written anew can stand in their strings alone, where
/// \u001b is theirs, too.
std::string printable_lines(std::string_view text);

/// As printable_lines(), for one message: a line feed stays only where the next line begins with
/// two blanks, as the further lines of messages do. So no message can begin a line as another one
/// would.
std::string printable_message(std::string_view text);

namespace log {

/// Draws a line over the one that was drawn last, on a terminal; an empty one takes that away.
void draw_stderr(std::string_view line) noexcept;

}  // namespace log
}  // namespace fourfold
