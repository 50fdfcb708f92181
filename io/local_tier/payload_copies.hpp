// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"
#include "format/checkpoint_contents.hpp"
#include "local_tier/node_folders.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/fail_together.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fourfold::io {

/// The nodes that have each payload file of one step.
using NodesOfFiles = std::vector<std::set<int>>;

/// Looks which node has which file, by name and size. Collective.
/// @param folder  of the step on this rank's node; may be missing
NodesOfFiles nodes_of_payloads(const Manifest& manifest, const std::filesystem::path& folder,
                               const NodeMap& nodes, comm::Communicator& world);

/// Copies all payload files of a step into `target`, synced, each by the rank that has least to
/// copy on a node that has the file, and checks each byte; where one is damaged, from another node.
/// Collective; all ranks come to the same decisions.
/// @param folder      of the step on this rank's node
/// @param nodes_with  of each file; none empty
/// @return of files that are intact nowhere, what is damaged
/// @throws UserError (cannot_write) about `target`
std::vector<std::string> copy_payloads(const Manifest& manifest,
                                       const std::filesystem::path& folder,
                                       const std::filesystem::path& target, const NodeMap& nodes,
                                       NodesOfFiles nodes_with, comm::Communicator& world);

/// Sends the payload files of each node to the next one, in chunks, and brings them to stable
/// storage there. Payload file K is rank K's. The ranks of a node send one after another where the
/// next node has fewer. What arrives is checked against the CRC that the file's writer worked out
/// from memory. Collective; a rank that fails goes on taking part.
/// @param folder  of the step on this rank's node: read from, and written to
/// @return what went wrong on this rank, to be agreed on
std::optional<comm::Failure> copy_to_partners(const Manifest& manifest,
                                              const std::filesystem::path& folder,
                                              const NodeMap& nodes, comm::Communicator& world);

}  // namespace fourfold::io
