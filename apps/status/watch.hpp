// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>

#include <filesystem>

namespace fourfold::status_program {

struct WatchRequest {
  std::filesystem::path log_dir;
  double interval_s = 2;
  bool chain = false;  ///< go on after an end after which another start makes sense
};

/// Shows the run until it is over: on a terminal a page that is drawn over itself, elsewhere a line
/// whenever state, checkpoint or the files that ask for something change, and at most once a minute
/// for a step alone. @return the code that the run ended with
ExitCode watch(const WatchRequest& request);

}  // namespace fourfold::status_program
