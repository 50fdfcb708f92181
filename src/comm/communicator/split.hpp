// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which ranks a split of a communicator brings together.
#pragma once

#include <fourfold/comm/communicator.hpp>

#include <span>
#include <vector>

namespace fourfold::comm {

/// The ranks of `communicator` that have named the same color, by (key, rank). Collective; blocks.
std::vector<int> members_of_color(Communicator& communicator, int color, int key);

/// The routes, each once, in rounds: of the routes of one round no two have a rank in common, so
/// one split of a communicator lays lines for all of them. Depends on nothing but the set of
/// routes.
std::vector<std::vector<MessageRoute>> disjoint_rounds(std::span<const MessageRoute> routes);

}  // namespace fourfold::comm
