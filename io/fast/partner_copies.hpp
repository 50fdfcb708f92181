// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fast/node_map.hpp"
#include "format/checkpoint_contents.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/fail_together.hpp>

#include <filesystem>
#include <optional>

namespace fourfold::io {

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
