// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fast/node_map.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/made_folders.hpp>

#include <filesystem>
#include <optional>

namespace fourfold::io {

/// Makes the directory on each node and tries whether the ranks of a node see one folder there, and
/// those of other nodes another: each node puts down a file, then all look what lies there. Where
/// some nodes cannot use theirs, a disk has died: that is a warning. Collective.
/// @return on the first rank of a node the folder, to be kept when the run really begins
/// @throws on all ranks alike UserError: config when nodes share it or ranks of a node do not;
///   cannot_write when no node can use it
[[nodiscard]] std::optional<MadeFolders> require_own_folders(const std::filesystem::path& directory,
                                                             const NodeMap& nodes,
                                                             comm::Communicator& world);

}  // namespace fourfold::io
