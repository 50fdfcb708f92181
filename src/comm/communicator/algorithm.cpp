// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/enum_name.hpp>
#include <fourfold/comm/algorithm.hpp>

#include <array>

namespace fourfold::comm {
namespace {

constexpr auto named = complete(std::to_array<Named<Algorithm>>({{Algorithm::automatic, "auto"},
                                                                 {Algorithm::direct, "direct"},
                                                                 {Algorithm::shared, "shared"},
                                                                 {Algorithm::ring, "ring"},
                                                                 {Algorithm::tree, "tree"}}));
constexpr auto algorithms = values_in(named);

}  // namespace

std::span<const Algorithm> all_algorithms() noexcept {
  return algorithms;
}

std::string_view name(Algorithm algorithm) noexcept {
  return name_in(named, algorithm);
}

std::optional<Algorithm> algorithm_from_name(std::string_view text) noexcept {
  return value_in(named, text);
}

}  // namespace fourfold::comm
