// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/batch/chain.hpp>

#include <string>
#include <vector>

namespace fourfold::job {

struct Request {
  std::string run_file;
  std::vector<std::string> overrides;
  batch::ChainLimits limits;
  int launcher_code = 0;
};

/// Prints "start" when the run should be started, "finished" when there is nothing left to do.
/// Notes the attempt, and removes the exit.json of the one before.
/// @throws UserError with the code that the batch script should end with, when the run must not be
/// started; exit.json says so too
ExitCode begin(const Request& request);

/// Notes how the attempt ended, and prints "again" when the run should be started once more,
/// "finished" or "stop". @return the code that the batch script should end with
ExitCode end(const Request& request);

}  // namespace fourfold::job
