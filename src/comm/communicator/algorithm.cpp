// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/enum_name.hpp>
#include <fourfold/comm/algorithm.hpp>

#include <algorithm>
#include <array>

namespace fourfold::comm {
namespace {

constexpr std::array algorithms{Algorithm::automatic, Algorithm::direct, Algorithm::shared,
                                Algorithm::ring, Algorithm::tree};

}  // namespace

std::span<const Algorithm> all_algorithms() noexcept {
  return algorithms;
}

std::string_view name(Algorithm algorithm) noexcept {
  constexpr std::array<std::string_view, algorithms.size()> names{"auto", "direct", "shared",
                                                                  "ring", "tree"};
  return name_in(names, algorithm);
}

std::optional<Algorithm> algorithm_from_name(std::string_view text) noexcept {
  const auto found = std::ranges::find(algorithms, text, name);
  return found == algorithms.end() ? std::nullopt : std::optional(*found);
}

}  // namespace fourfold::comm
