// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>

#include <memory>
#include <string>

namespace fourfold::comm {

/// A communicator that answers as rank `rank` of `size` and moves nothing between ranks: what comes
/// from others stays as it was in the buffers, this rank's own part is put where it belongs. For
/// planning, and for checking layouts of thousands of ranks in one process. With size 1 it is an
/// exact communicator.
///
/// subgroup() (and so Mesh) works for any size; split() cannot know the others' colors.
/// split() @throws UserError (exit code internal) unless size is 1.
/// @pre 0 <= rank < size
std::unique_ptr<Communicator> make_dry_run(int rank, int size, std::string name = "world");

}  // namespace fourfold::comm
