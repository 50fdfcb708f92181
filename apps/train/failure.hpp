// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"
#include "run_directory.hpp"

#include <fourfold/base/error.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fourfold::train_program {

/// Leaves word of an error. One that comes before the run file is read, or from it, is told as well
/// if log.dir can be found: `fourfold job end` looks for it there.
void note_failure(const Arguments& arguments, std::optional<RunDirectory>& directory, ExitCode code,
                  const std::string& message);

/// A wrong word on the command line: the run file may still be known, and `fourfold job end` is to
/// find in log.dir that another start would not mend that. By one rank of those that say so.
void note_wrong_command_line(Arguments arguments, const std::vector<std::string>& words);

}  // namespace fourfold::train_program
