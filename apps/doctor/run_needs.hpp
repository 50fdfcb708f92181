// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "node_facts.hpp"

#include <fourfold/base/dtype.hpp>
#include <fourfold/comm/algorithm.hpp>
#include <fourfold/comm/mesh.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::doctor {

struct Arguments {
  std::string run_file;                  ///< empty: none
  std::vector<std::string> overrides;    ///< --set
  std::vector<std::string> directories;  ///< --dir
  double seconds = 45;                   ///< for all of it, about
  bool json = false;
};

/// What the run of a run file will ask of the ranks and of the file systems.
struct RunNeeds {
  /// None without a run file, or if it does not fit. It may leave ranks over, the last ones.
  std::optional<comm::MeshShape> mesh;
  std::string problem;          ///< why it does not fit these ranks
  std::int64_t rank_bytes = 0;  ///< memory of this rank on its host
  std::int64_t save_bytes = 0;  ///< of a checkpoint
  std::int64_t most_saved_by_rank_bytes = 0;
  std::int64_t offloaded_bytes = 0;  ///< by this rank, to a file
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
