// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "mesh_traces.hpp"

#include <cstddef>

namespace fourfold::test {

MeshTrace trace_mesh(const runfile::RunConfig& config, const comm::MeshShape& mesh, int steps) {
  train::MeshWalk walk(train::resolve_run({.config = config}, mesh));
  MeshTrace trace{.mesh = mesh,
                  .optim = config.optim,
                  .table = walk.table(),
                  .initial_weights = walk.start().weights,
                  .steps = {},
                  .disagreements = {}};
  for (int step = 0; step < steps; ++step) {
    trace.steps.push_back(walk.step());
  }
  trace.disagreements = walk.disagreements();
  return trace;
}

train::MeshComparison compare(const MeshTrace& reference, const MeshTrace& other,
                              const train::Tolerances& tolerances) {
  train::MeshComparer comparer(reference.optim, reference.table, tolerances);
  comparer.compare_initial_weights(reference.initial_weights, other.initial_weights);
  for (std::size_t step = 0; step < reference.steps.size(); ++step) {
    const train::StepStart start{
        .weights = step == 0 ? other.initial_weights : other.steps[step - 1].weights,
        .loss_scale = {}};
    comparer.compare_step(start, reference.steps.at(step), other.steps.at(step), nullptr);
  }
  return comparer.finish(other.disagreements);
}

}  // namespace fourfold::test
