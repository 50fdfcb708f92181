// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "node_map.hpp"

#include <fourfold/comm/communicator.hpp>

#include <filesystem>

namespace fourfold::io {

/// Makes the directory on each node and tries whether the ranks of a node see one folder there, and
/// those of other nodes another: each node puts down a file, then all look what lies there.
/// Collective. @throws on all ranks alike UserError: config when it is not so; cannot_write
void require_own_folders(const std::filesystem::path& directory, const NodeMap& nodes,
                         comm::Communicator& world);

}  // namespace fourfold::io
