// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A run on one mesh, step by step and seen from outside: losses, and gradients and weights as
/// whole logical tensors, so that runs on different meshes can be compared.
#pragma once

#include "matmul_check.hpp"
#include "plan/rank_tasks.hpp"

#include <fourfold/comm/mesh.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/train/loss_scale.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/step_runner.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::train {

/// Per parameter in table order all its elements, row-major. What no rank holds is nan.
using ParameterValues = std::vector<std::vector<float>>;

/// What a step begins with, apart from the optimizer's moments: loss and gradients are a function
/// of this, the number of the step and the run file.
struct StepStart {
  ParameterValues weights;  ///< f32 masters
  LossScaleState loss_scale;
};

/// What one step gave.
struct StepTrace : StepOutcome {
  ParameterValues gradients;   ///< of the global batch, before clipping
  ParameterValues weights;     ///< f32 masters after the update
  MatmulErrors products = {};  ///< of all ranks, if they are checked
};

/// A run on a mesh whose ranks are threads of this process. The threads wait between two calls.
/// Writes nothing to disk. Beside what the ranks themselves hold it keeps 28 bytes per parameter
/// during a step and 4 between two, however many steps there are.
class MeshWalk {
 public:
  /// Starts the ranks and draws the initial weights. Blocks until all have them.
  /// @param product_tolerance  every product of the model is checked where it is made
  ///   (MatmulCheck), with this tolerance; absent: none is
  /// @throws UserError as Trainer, about data and sizes; this and step() throw what a rank throws,
  ///   after which only the destructor may be called
  explicit MeshWalk(ResolvedRun run, std::optional<double> product_tolerance = {});
  ~MeshWalk();

  const std::vector<model::ParameterSpec>& table() const noexcept { return table_; }
  /// What the next step() begins with.
  const StepStart& start() const noexcept { return start_; }
  /// Steps made so far.
  std::int64_t steps() const noexcept { return step_; }
  /// Makes the next step, as training does.
  StepTrace step() { return make_step(nullptr); }
  /// Makes the next step from another start, and goes on from what it makes of that. The moments
  /// stay this run's own, so the weights it makes are no other run's.
  /// @pre the run made no step() before; the start has a tensor per parameter of table()
  StepTrace step_from(const StepStart& start) { return make_step(&start); }

  /// What ranks that should have the same bits did not agree on so far, in words; empty when all is
  /// well.
  const std::vector<std::string>& disagreements() const noexcept { return disagreements_; }

 private:
  class Rank;

  /// @param start  nullptr: what the step before has left
  StepTrace make_step(const StepStart* start);

  ResolvedRun run_;
  std::vector<model::ParameterSpec> table_;
  std::int64_t step_ = 0;
  StepStart start_;
  std::vector<std::string> disagreements_;
  RankTasks<std::unique_ptr<Rank>> tasks_;  ///< last: its threads use the others
};

}  // namespace fourfold::train
