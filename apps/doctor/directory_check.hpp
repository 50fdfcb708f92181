// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check.hpp"
#include "placement_checks.hpp"

#include <fourfold/comm/communicator.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fourfold::doctor {

/// A directory that a run will use, or that was named.
struct Directory {
  enum class Use : std::uint8_t {
    shared,      ///< every node writes, all see the same
    first_rank,  ///< rank 0 writes
    node,        ///< every node has its own
    data,        ///< every node reads
  };
  std::string key;   ///< "checkpoint.dir", "--dir"
  std::string path;  ///< need not be there yet; of data: the first pattern
  Use use = Use::shared;
  std::int64_t least_bytes = 0;            ///< that a run fails without; `node`: of each node
  std::int64_t needed_bytes = 0;           ///< with all that it wants to keep
  std::int64_t needed_files = 0;           ///< inodes
  std::vector<std::string> patterns = {};  ///< of data: token files
};

/// What one node found out about one of them. -1: not known.
struct DirectoryFacts {
  std::string probed;   ///< the directory, or the nearest one above it that is there
  std::string problem;  ///< what is wrong and what to do; empty: nothing
  bool has_links = false;
  std::int64_t bytes = 0;  ///< written and read back; of data: read
  double write_s = 0;
  double read_s = 0;
  std::int64_t free_bytes = -1;
  std::int64_t free_files = -1;
  bool sees_first = false;   ///< what the first node wrote
  bool sees_second = false;  ///< what the second node wrote
  double seen_s = 0;         ///< until it was seen
  std::int64_t tokens = 0;   ///< of data
};

/// Tries each directory on each node, all nodes at the same time. Collective over `leaders`, the
/// first ranks of the nodes. @return by directory, then by node
/// @param seconds_each  for what is written to each of them, and for what others have to see
std::vector<std::vector<DirectoryFacts>> measure_directories(std::span<const Directory> directories,
                                                             comm::Communicator& leaders,
                                                             double seconds_each);

/// Nodes that are not on the file system that most are on; nothing when there is none that more
/// than half of the nodes share.
/// @param facts  of all nodes: who sees what the first and the second of them wrote
std::optional<std::vector<std::size_t>> strangers(std::span<const DirectoryFacts> facts);

Check directory_check(const Ranks& ranks, const Directory& directory,
                      std::span<const DirectoryFacts> facts);

}  // namespace fourfold::doctor
