// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check.hpp"
#include "gpu_facts.hpp"
#include "placement_checks.hpp"

#include <span>

namespace fourfold::doctor {

/// The GPUs of the nodes against what is sound, and against each other's. A pure function.
/// @param nodes    by node, in the order of ranks.first_ranks()
/// @param on_gpus  whether ranks of this build compute on them
Check devices_check(const Ranks& ranks, std::span<const NodeGpus> nodes, bool on_gpus);

}  // namespace fourfold::doctor
