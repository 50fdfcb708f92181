// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/io/crc32c.hpp>
#include <fourfold/io/text_sum.hpp>

#include <fmt/format.h>

#include <span>

namespace fourfold::io {
namespace {

constexpr std::string_view sum_mark = "# crc32c ";
constexpr std::string_view sum_meaning =
    " of all lines before: as long as it fits, this file may be replaced\n";

/// The line that ends such a text.
std::string sum_line(std::string_view text) {
  return fmt::format("{}{:08x}{}", sum_mark, crc32c(std::as_bytes(std::span(text))), sum_meaning);
}

}  // namespace

std::string with_sum(std::string text) {
  text += sum_line(text);
  return text;
}

bool sum_holds(std::string_view text) {
  const std::size_t last = text.rfind(sum_mark);
  return last != std::string_view::npos && text.substr(last) == sum_line(text.substr(0, last));
}

}  // namespace fourfold::io
