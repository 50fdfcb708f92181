// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check.hpp"
#include "placement_checks.hpp"

#include <fourfold/program/command_output.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
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

/// What a node knows of its GPUs.
struct NodeGpus {
  bool has_driver = false;   ///< nvidia-smi is there
  std::string problem = {};  ///< what it says instead of an answer; empty: none
  std::vector<GpuFacts> gpus = {};
  /// Pairs that do not reach each other's memory, and why: "0-1 CNS".
  std::vector<std::string> apart = {};
};

/// Asks nvidia-smi of PATH; what the job may not use is not among what it lists. Local.
/// @param output_of  program::output_of(), or what plays it
NodeGpus query_gpus(const std::function<std::optional<program::CommandOutput>(
                        const std::vector<std::string>& command)>& output_of);

/// The GPUs of the nodes against what is sound, and against each other's. A pure function.
/// @param nodes    by node, in the order of ranks.distinct_nodes()
/// @param on_gpus  whether ranks of this build compute on them
Check devices_check(const Ranks& ranks, std::span<const NodeGpus> nodes, bool on_gpus);

}  // namespace fourfold::doctor
