// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>

#include <string>
#include <vector>

namespace fourfold::status_program {

struct Request {
  std::vector<std::string> runs = {};
  bool json = false;
  bool brief = false;                ///< one line per run
  std::string prometheus_file = {};  ///< empty: none
};

/// Prints and writes what is asked for. One run of several that cannot be looked at is said on
/// stderr, and the others are shown. @return the code to end with
/// @throws UserError: config where the only run cannot be looked at; cannot_write
ExitCode show(const Request& request);

}  // namespace fourfold::status_program
