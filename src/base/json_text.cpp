// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/json_text.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace fourfold::json_detail {

std::string at_byte(std::string_view text, std::size_t byte, const std::string& what) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  return fmt::format("line {}, byte {}: {}", 1 + std::ranges::count(before, '\n'), byte, what);
}

std::string reason_in(std::string_view message) {
  const std::size_t bracket =
      message.starts_with('[') ? message.find("] ") : std::string_view::npos;
  return std::string(bracket == std::string_view::npos ? message : message.substr(bracket + 2));
}

}  // namespace fourfold::json_detail
