// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fourfold::train_program {

/// Where a folder is, or will be when it is made.
struct FolderPlace {
  std::int64_t kind = 0;   ///< of its file system (statfs(2)); 0: not known
  std::int64_t inode = 0;  ///< of the nearest folder that is there
};

/// Whether this host has a folder elsewhere than more than half of the hosts: where a file system
/// is not mounted, its place is on the host's own disk, of another kind. Another kind alone says
/// nothing: the host that serves the others has the same folder on its disk, with the same inode.
bool is_elsewhere(const FolderPlace& mine, std::span<const FolderPlace> of_hosts);

/// Nodes that do not see what the others do.
struct BlindNodes {
  std::vector<std::string> hosts = {};  ///< each once; empty: there are none
  std::string reason = {};              ///< what the first of them does not see
  int first_seeing_rank = 0;            ///< on none of these hosts
};

/// Collective; the same answer on all ranks. Whether all nodes see what the run file names: token
/// files, and the folders in which log.dir and checkpoint.dir lie, on a file system of the same
/// kind. Nodes are at fault when they are
/// fewer than half of all: where more of them differ, the run file names what one node alone has.
/// Asks the file system for a few names on each rank; where one is missing, for two seconds.
/// @param config   nothing on a rank that could not read it
/// @param failure  why
/// @param host     of this rank
BlindNodes find_blind_nodes(const std::optional<runfile::RunConfig>& config,
                            const std::optional<comm::Failure>& failure, const std::string& host,
                            comm::Communicator& world);

}  // namespace fourfold::train_program
