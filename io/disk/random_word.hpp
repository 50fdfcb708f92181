// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <random>
#include <string>

namespace fourfold::io {

/// 16 hexadecimal digits that nobody else draws: the name of what several jobs may make in a
/// folder.
inline std::string random_word() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

}  // namespace fourfold::io
