// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How messages are made. What goes into one comes in part from outside: names of files, hosts and
/// tensors, values of a run file, what other programs said. A line feed in it would begin a line
/// that reads like one of ours. Here the only line feeds are those of the format itself.
#pragma once

#include <fourfold/base/text.hpp>

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace fourfold {

/// An argument that a program of ours has made of several lines, each of them by format_message().
struct MadeLines {
  std::string text;
};

namespace message_detail {

/// What fmt::join() makes.
template <class T>
concept Joined = requires(const T& argument) {
  argument.begin;
  argument.end;
  argument.sep;
};

/// What stands in the message for an argument: text as printable() has it, all else as it is.
template <class T>
decltype(auto) shown(const T& argument) {
  if constexpr (std::is_same_v<T, MadeLines>) {
    return std::string_view(argument.text);
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return printable(std::string_view(argument));
  } else if constexpr (std::is_same_v<T, char>) {
    return printable(std::string_view(&argument, 1));
  } else if constexpr (Joined<T>) {
    if constexpr (std::is_convertible_v<decltype(*argument.begin), std::string_view>) {
      std::string joined;
      for (auto at = argument.begin; at != argument.end; ++at) {
        if (at != argument.begin) {
          joined.append(argument.sep.data(), argument.sep.size());
        }
        joined += printable(std::string_view(*at));
      }
      return joined;
    } else {
      return (argument);
    }
  } else {
    return (argument);
  }
}

template <class T>
using Shown = std::remove_cvref_t<decltype(shown(std::declval<const T&>()))>;

}  // namespace message_detail

/// fmt::format() of a message: every argument that is text, alone or in fmt::join(), is shown as
/// printable() shows it, so that it can begin no line. What a message made this way says stays what
/// it is when it goes into another one. Separators of fmt::join() are the program's and stay.
/// @param format  continues after a line feed with two blanks (see printable_message())
template <class... Arguments>
std::string format_message(fmt::format_string<message_detail::Shown<Arguments>...> format,
                           const Arguments&... arguments) {
  return [&](const auto&... shown) {
    return fmt::vformat(format, fmt::make_format_args(shown...));
  }(message_detail::shown(arguments)...);
}

}  // namespace fourfold
