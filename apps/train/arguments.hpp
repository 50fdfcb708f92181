// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace fourfold::train_program {

/// The command line of `fourfold train`. It is frozen: what a run is stands in the run file.
struct Arguments {
  std::string run_file;
  std::vector<std::string> overrides;        ///< --set, and the options that are short for one
  std::vector<std::string> allowed_changes;  ///< --allow-change
  bool print_config = false;
  bool dry_run = false;
};

/// Binds the options of `command` to `arguments`, with help texts.
void describe(CLI::App& command, Arguments& arguments);

}  // namespace fourfold::train_program
