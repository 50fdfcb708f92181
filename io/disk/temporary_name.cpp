// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/io/temporary_name.hpp>

#include <fmt/format.h>

namespace fourfold::io {
namespace {

bool is_hexadecimal(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

constexpr std::string_view mark = ".tmp-";

}  // namespace

std::filesystem::path temporary_sibling(const std::filesystem::path& path, std::string_view word) {
  return path.parent_path() / fmt::format(".{}{}{}", path.filename().string(), mark, word);
}

std::optional<std::string> name_of_temporary(std::string_view name) {
  const std::size_t at = name.rfind(mark);
  if (at == std::string_view::npos || at == 0) {
    return std::nullopt;
  }
  const std::string_view word = name.substr(at + mark.size());
  if (name.front() == '.' && at > 1 && is_hexadecimal(word)) {
    return std::string(name.substr(1, at - 1));
  }
  // Of an older version: a process' number behind the name as it is.
  const bool is_number = word.find_first_not_of("0123456789") == std::string_view::npos;
  return !word.empty() && is_number ? std::optional(std::string(name.substr(0, at))) : std::nullopt;
}

}  // namespace fourfold::io
