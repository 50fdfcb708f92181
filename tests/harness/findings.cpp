// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/harness/on_ranks.hpp>

#include <fmt/format.h>

#include <string>

namespace fourfold::harness {

void Findings::check(bool condition, const std::string& what, std::source_location where) {
  // The first few say it all; a wrong buffer would give thousands.
  if (!condition && found_.size() < 5) {
    found_.push_back(fmt::format("{}:{}: {}", where.file_name(), where.line(), what));
  }
}

}  // namespace fourfold::harness
