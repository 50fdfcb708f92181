// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/comm/algorithm.hpp>

#include <array>

namespace fourfold::comm {

std::string_view name(Algorithm algorithm) noexcept {
  constexpr std::array<std::string_view, 3> names{"auto", "direct", "shared"};
  return names[static_cast<std::size_t>(algorithm)];
}

std::optional<Algorithm> algorithm_from_name(std::string_view text) noexcept {
  for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::direct, Algorithm::shared}) {
    if (text == name(algorithm)) {
      return algorithm;
    }
  }
  return std::nullopt;
}

}  // namespace fourfold::comm
