// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "slurm_lines.hpp"

#include <cstddef>
#include <sstream>

namespace fourfold::batch {

std::vector<std::vector<std::string>> lines_of_form(std::string_view text, const std::regex& form) {
  std::vector<std::vector<std::string>> found;
  std::istringstream lines{std::string(text)};
  // std::regex takes its way through a line on the stack.
  constexpr std::size_t longest = 4500;  // more than a path has
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find_last_not_of(" \t\r");
    line.resize(end == std::string::npos ? 0 : end + 1);
    std::smatch groups;
    if (line.size() <= longest && std::regex_match(line, groups, form)) {
      found.emplace_back(groups.begin(), groups.end());
    }
  }
  return found;
}

}  // namespace fourfold::batch
