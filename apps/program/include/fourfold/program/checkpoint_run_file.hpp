// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace fourfold::program {

/// The run file in a checkpoint, for programs that start where there is neither MPI nor HDF5: they
/// ask `fourfold ckpt info --run-file`, which has both.
/// @param path  a step folder, or a folder of steps or a run, of which the newest valid one is
/// taken
/// @throws UserError with what that program says, and its code
std::string run_file_in_checkpoint(const std::string& path);

}  // namespace fourfold::program
