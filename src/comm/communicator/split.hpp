// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>

#include <vector>

namespace fourfold::comm {

/// The ranks of `communicator` that have named the same color, by (key, rank). Collective; blocks.
std::vector<int> members_of_color(Communicator& communicator, int color, int key);

}  // namespace fourfold::comm
