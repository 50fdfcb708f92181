// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace fourfold {

/// The name of a value of an enumeration whose values count from 0.
/// @param names  of all values, in their order
/// @pre there are as many names as values
template <class Enum, std::size_t count>
constexpr std::string_view name_in(const std::array<std::string_view, count>& names,
                                   Enum value) noexcept {
  return names[static_cast<std::size_t>(value)];
}

}  // namespace fourfold
