// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/rank_identity.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

namespace fourfold {
namespace {

RankIdentity& identity() {
  static RankIdentity instance;
  return instance;
}

}  // namespace

void set_rank_identity(RankIdentity next) {
  identity() = std::move(next);
}

const RankIdentity& rank_identity() noexcept {
  return identity();
}

std::string ranges_text(std::span<const int> numbers) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    parts.push_back(first == last ? fmt::format("{}", numbers[first])
                                  : fmt::format("{}-{}", numbers[first], numbers[last]));
    first = last + 1;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string ranks_text(std::span<const int> ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", ranges_text(ranks));
}

}  // namespace fourfold
