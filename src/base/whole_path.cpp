// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/whole_path.hpp>

#include <algorithm>
#include <system_error>

namespace fourfold {

std::filesystem::path whole_path(const std::filesystem::path& path) {
  std::error_code failure;
  std::filesystem::path whole = std::filesystem::absolute(path, failure);
  if (!failure && std::ranges::find(whole, std::filesystem::path("..")) != whole.end()) {
    whole = std::filesystem::weakly_canonical(whole, failure);
  }
  if (failure) {
    return path;
  }
  whole = whole.lexically_normal();
  return whole.has_filename() || !whole.has_relative_path() ? whole : whole.parent_path();
}

bool begins_with_home(std::string_view path) {
  return path == "~" || path.starts_with("~/");
}

}  // namespace fourfold
