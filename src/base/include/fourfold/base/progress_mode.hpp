// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/enum_name.hpp>

#include <cstdint>

namespace fourfold {

/// How stderr shows the progress of what takes long: log.progress, and --progress of programs.
enum class ProgressMode : std::uint8_t { automatic, bar, plain, none };
constexpr auto names_of(ProgressMode /*any*/) {
  using enum ProgressMode;
  return std::to_array<Named<ProgressMode>>(
      {{automatic, "auto"}, {bar, "bar"}, {plain, "plain"}, {none, "none"}});
}

}  // namespace fourfold
