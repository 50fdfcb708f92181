// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the first rank of each node finds out about it, and what is judged by that. The checks are
/// pure functions; lists by node are in the order of first_ranks().
#pragma once

#include "check.hpp"
#include "rank_facts.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/program/command_output.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::doctor {

/// What the driver knows of one GPU. -1: it does not say.
struct GpuFacts {
  std::int64_t index = -1;  ///< as nvidia-smi counts
  std::string uuid;
  std::string name;
  std::string driver;
  std::int64_t temperature_c = -1;
  std::int64_t used_mib = -1;
  std::int64_t total_mib = -1;
  std::int64_t uncorrected_errors = -1;  ///< of its memory, since it was reset
  bool needs_reset = false;   ///< memory is to be replaced by spare memory, which a reset does
  bool has_no_spare = false;  ///< and for some there was none
  std::vector<std::string> slowed_by = {};  ///< "hw_thermal_slowdown": now, by the hardware's own
};

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
  std::string node = {};
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

struct NodeFacts {
  std::string node = {};          ///< its name (node_names())
  double clock_offset_s = 0;      ///< its time of day before the first node's
  std::string name_problem = {};  ///< of the names that it has to find others by; empty: none
  std::string gpu_problem = {};   ///< what nvidia-smi says instead of an answer; empty: none
  std::vector<GpuFacts> gpus = {};
  /// Pairs that do not reach each other's memory, and why: "0-1 CNS".
  std::vector<std::string> apart = {};
  std::vector<double> received_gb_s = {};  ///< by the node it came from; 0: not measured
  std::vector<DirectoryFacts> directories = {};
};

/// Asks nvidia-smi of PATH; what the job may not use is not among what it lists. Local.
/// @param output_of  program::output_of(), or what plays it
void query_gpus(const std::function<std::optional<program::CommandOutput>(
                    const std::vector<std::string>& command)>& output_of,
                NodeFacts& own);
/// The GPUs of the nodes against what is sound, and against each other's.
/// @param on_gpus  whether ranks of this build compute on them
Check devices_check(const Ranks& ranks, const std::vector<NodeFacts>& nodes, bool on_gpus);

/// Collective over `leaders`, the first ranks of the nodes.
/// @param hosts     of the leaders, as MPI names them
/// @param machines  of the leaders, comm::machine_identity()
void measure_clock(const std::vector<std::string>& hosts, const std::vector<std::string>& machines,
                   comm::Communicator& leaders, NodeFacts& own);
/// Clocks against their median: the first node's own may be the wrong one.
Check clock_check(const std::vector<NodeFacts>& nodes);
Check names_check(const std::vector<NodeFacts>& nodes);

/// Every node sends to some others, at growing distances, all at the same time: one rank each.
/// Collective over `leaders`, the first ranks of the nodes.
/// @return NodeFacts::received_gb_s of this one
std::vector<double> measure_links(comm::Communicator& leaders, double seconds);
/// Of each node the best of its links, in and out: a node with a bad adapter has no good one.
std::vector<double> best_links(const std::vector<NodeFacts>& nodes);
Check network_check(const Ranks& ranks, const std::vector<NodeFacts>& nodes);

/// Tries each directory on each node, all nodes at the same time. Collective over `leaders`, the
/// first ranks of the nodes. @return by directory
/// @param node          the name of this one
/// @param seconds_each  for what is written to each of them, and for what others have to see
std::vector<DirectoryFacts> measure_directories(const std::vector<Directory>& directories,
                                                const std::string& node,
                                                comm::Communicator& leaders, double seconds_each);
/// Nodes that are not on the file system that most are on; nothing when there is none that more
/// than half of the nodes share.
/// @param facts  of all nodes: who sees what the first and the second of them wrote
std::optional<std::vector<std::string>> strangers(const std::vector<DirectoryFacts>& facts);
/// @param facts  of the directory, of all nodes
Check directory_check(const Directory& directory, std::vector<DirectoryFacts> facts);

}  // namespace fourfold::doctor
