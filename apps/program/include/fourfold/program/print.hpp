// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The only way to standard output. What programs show comes in part from files, from other
/// programs and from hosts: nothing of it may write to the reader's terminal anything but text.
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <fmt/format.h>

#include <string_view>

namespace fourfold::program {

/// Writes lines, or JSON or TOML, with each character that a terminal obeys shown as an escape
/// (base/log.hpp), whether a terminal reads them or not.
/// @throws std::system_error when standard output cannot be written
void print_text(std::string_view lines);

/// print_text() of a message: an argument that is text begins no line (base/message.hpp).
template <class... Arguments>
void print(fmt::format_string<message_detail::Shown<Arguments>...> format,
           const Arguments&... arguments) {
  print_text(format_message(format, arguments...));
}

/// Writes what is data itself, text of a model or a script, for example: byte by byte, but to a
/// terminal as print_text() does.
/// @throws std::system_error when standard output cannot be written
void print_data(std::string_view bytes);

}  // namespace fourfold::program
