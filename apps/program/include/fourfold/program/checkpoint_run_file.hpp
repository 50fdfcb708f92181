// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace fourfold::program {

/// The run file in a checkpoint, for programs that start where there is neither MPI nor HDF5: they
/// ask `fourfold ckpt info --run-file`, which has both.
/// @param path      a step folder, or a folder of steps, of which the newest valid one is taken
/// @param or_else   where to look when there is nothing at `path`: a run's own checkpoints
/// @throws UserError (config) with what that program says
std::string run_file_in_checkpoint(const std::string& path, const std::string& or_else);

}  // namespace fourfold::program
