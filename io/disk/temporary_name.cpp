// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/temporary.hpp"

#include <fourfold/io/temporary_name.hpp>

#include <fmt/format.h>

namespace fourfold::io {
namespace {

constexpr std::string_view mark = ".tmp-";

}  // namespace

std::filesystem::path temporary_sibling(const std::filesystem::path& path) {
  return temporary_sibling(path, random_word());
}

std::filesystem::path temporary_sibling(const std::filesystem::path& path, std::string_view word) {
  return path.parent_path() / fmt::format(".{}{}{}", path.filename().string(), mark, word);
}

std::optional<std::string> name_of_temporary(std::string_view name) {
  const std::size_t at = name.rfind(mark);
  const bool is_one = at != std::string_view::npos && at > 1 && name.front() == '.' &&
                      is_random_word(name.substr(at + mark.size()));
  return is_one ? std::optional(std::string(name.substr(1, at - 1))) : std::nullopt;
}

}  // namespace fourfold::io
