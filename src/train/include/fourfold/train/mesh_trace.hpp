// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A few steps of a run on one mesh, seen from outside: losses, and gradients and weights as whole
/// logical tensors, so that runs on different meshes can be laid beside each other.
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/train/loss_scale.hpp>

#include <string>
#include <vector>

namespace fourfold::train {

/// Per parameter in table order all its elements, row-major. What no rank holds is nan.
using ParameterValues = std::vector<std::vector<float>>;

struct StepTrace {
  double loss = 0;       ///< mean over the valid targets of the global batch, nats
  double grad_norm = 0;  ///< as the clipping sees it
  double loss_scale = 1;
  StepFate fate = StepFate::applied;
  ParameterValues gradients;  ///< of the global batch, before clipping
  ParameterValues weights;    ///< f32 masters after the update
};

struct MeshTrace {
  comm::MeshShape mesh;
  runfile::OptimConfig optim;
  std::vector<model::ParameterSpec> table;
  ParameterValues initial_weights;
  std::vector<StepTrace> steps;
  /// What ranks that should have the same bits did not agree on, in words; empty when all is well.
  std::vector<std::string> disagreements;
};

/// Trains `steps` steps from the run's initial weights on a mesh whose ranks are threads of this
/// process, and keeps everything: 16 bytes per parameter and step while it runs, 8 afterwards.
/// Writes nothing to disk.
/// @param config  validated, and its batch sizes with the mesh (validate_batch)
/// @throws UserError as Trainer, about data and sizes
MeshTrace trace_mesh(const runfile::RunConfig& config, const comm::MeshShape& mesh, int steps);

}  // namespace fourfold::train
