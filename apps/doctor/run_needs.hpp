// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"
#include "directory_check.hpp"

#include <fourfold/base/dtype.hpp>
#include <fourfold/comm/algorithm.hpp>
#include <fourfold/comm/mesh.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::doctor {

/// What the run of a run file will ask of the ranks and of the file systems.
struct RunNeeds {
  /// None without a run file, or if it does not fit. It may leave ranks over, the last ones.
  std::optional<comm::MeshShape> mesh;
  std::string problem;          ///< why it does not fit these ranks
  std::int64_t rank_bytes = 0;  ///< memory of this rank on its host
  DType precision = DType::f32;
  comm::Algorithm algorithm = comm::Algorithm::automatic;
  std::vector<Directory> directories;  ///< those of --dir last
};

/// Local; reads the run file, logs its warnings and notes on rank 0, and plans this rank as
/// training will set it up.
/// @param ranks_on_node  the most that there are on any
/// @throws UserError (config) for a run file that no run would take
RunNeeds needs_of(const Arguments& arguments, int rank, int ranks, std::int64_t ranks_on_node);

}  // namespace fourfold::doctor
