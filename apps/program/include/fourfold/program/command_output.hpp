// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fourfold::program {

struct CommandOutput {
  int code = 0;      ///< of its exit; -1: it ended by a signal
  std::string text;  ///< both of its streams
};

/// Runs a program of PATH, without a shell, and waits for it.
/// @return nothing when there is no such program
std::optional<CommandOutput> output_of(const std::vector<std::string>& command);

}  // namespace fourfold::program
