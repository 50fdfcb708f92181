// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What is judged by the facts of all ranks. Pure functions.
#pragma once

#include "check.hpp"
#include "rank_facts.hpp"

#include <fourfold/comm/mesh.hpp>

#include <optional>
#include <string>

namespace fourfold::doctor {

/// The launcher's number of ranks against MPI's, and how many are on each node.
Check launch_check(const Ranks& ranks);
/// Whether neighbours on tp share a node. @param problem  why there is no mesh, if there is none
Check mesh_check(const Ranks& ranks, const std::optional<comm::MeshShape>& mesh,
                 const std::string& problem);
/// Cores against threads, by machine.
Check cores_check(const Ranks& ranks);
/// Memory of the machines against each other and against what the run needs.
Check memory_check(const Ranks& ranks);
/// Huge pages, limits of the shell, room for shared memory.
Check limits_check(const Ranks& ranks);
/// Matrix products, and bandwidth of memory.
Check products_check(const Ranks& ranks, DType dtype);
Check bandwidth_check(const Ranks& ranks);
/// fourfold is the same build on all ranks, of which nodes and versions are known. Nothing else
/// that ranks tell can be trusted where it is not.
Check builds_check(const Ranks& ranks);
/// MPI and HDF5 are the same on all ranks.
Check versions_check(const Ranks& ranks);

}  // namespace fourfold::doctor
