// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/program/command_line.hpp>

#include <string>
#include <vector>

namespace fourfold::doctor {

struct Arguments {
  std::string run_file;                  ///< empty: none
  std::vector<std::string> overrides;    ///< --set
  std::vector<std::string> directories;  ///< --dir
  double seconds = 45;                   ///< for all of it, about
  bool json = false;
};

/// The options and the manual page.
void describe(CLI::App& command, Arguments& arguments);

/// @throws UserError (usage) for options that do not go together
void validate(const Arguments& arguments);

}  // namespace fourfold::doctor
