// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "verify/mesh_comparer.hpp"

#include <string>
#include <vector>

namespace fourfold::test {

/// A few steps of a run on one mesh, all of them in memory.
struct MeshTrace {
  comm::MeshShape mesh;
  runfile::OptimConfig optim;
  std::vector<model::ParameterSpec> table;
  train::ParameterValues initial_weights;
  std::vector<train::StepTrace> steps;
  std::vector<std::string> disagreements;  ///< MeshWalk::disagreements()
};

/// Trains `steps` steps from the run's initial weights, as MeshWalk does.
MeshTrace trace_mesh(const runfile::RunConfig& config, const comm::MeshShape& mesh, int steps);

/// Compares two runs that each went their own way: errors of one step come into the next, which
/// those of a few steps hardly feel.
/// @pre both have the same table and number of steps
train::MeshComparison compare(const MeshTrace& reference, const MeshTrace& other,
                              const train::Tolerances& tolerances);

}  // namespace fourfold::test
