// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"
#include "run_directory.hpp"

#include <fourfold/base/error.hpp>

#include <optional>

namespace fourfold::train_program {

/// Everything from the start of MPI to its end: one start of a run on this rank. Collective over
/// all that the launcher has started.
/// @param argc, argv  for MPI_Init
/// @param directory   made as soon as it is known; errors are told through it
/// @throws Error
ExitCode train_run(const Arguments& arguments, int argc, char** argv,
                   std::optional<RunDirectory>& directory);

}  // namespace fourfold::train_program
