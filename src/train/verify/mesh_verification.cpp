// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "mesh_comparer.hpp"
#include "mesh_walk.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/train/mesh_verification.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace fourfold::train {
namespace {

/// The reference in the other's precision: what is compared are meshes.
ResolvedRun in_precision_of(const runfile::RunConfig& other, const ResolvedRun& reference) {
  runfile::RunConfig config = reference.config;
  config.train.precision = other.train.precision;
  config.train.loss_scale = other.train.loss_scale;
  config.train.loss_scale_initial = other.train.loss_scale_initial;
  config.train.loss_scale_min = other.train.loss_scale_min;
  config.train.loss_scale_window = other.train.loss_scale_window;
  config.optim.stochastic_rounding = other.optim.stochastic_rounding;
  return resolve_run({.config = std::move(config)}, reference.mesh.ranks());
}

ResolvedRun in_f32(const ResolvedRun& reference) {
  runfile::RunConfig config = reference.config;
  config.train.precision = DType::f32;
  config.optim.stochastic_rounding = false;
  return resolve_run({.config = std::move(config)}, reference.mesh.ranks());
}

/// Each one up or down, at random and the same every time.
void move_to_neighbours(ParameterValues& weights) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (std::size_t tensor = 0; tensor < weights.size(); ++tensor) {
    const PhiloxKey key = philox_key(0, RandomUse::weight_rounding, tensor);
    for (std::size_t i = 0; i < weights[tensor].size(); ++i) {
      const bool up = (philox(key, i).word[0] & 1U) != 0;
      weights[tensor][i] = std::nextafter(weights[tensor][i], up ? infinity : -infinity);
    }
  }
}

template <class Stored>
void round_to(ParameterValues& weights) {
  for (std::vector<float>& tensor : weights) {
    std::ranges::transform(tensor, tensor.begin(),
                           [](float weight) { return static_cast<float>(Stored(weight)); });
  }
}

/// What a step that rounds in other ways begins with.
StepStart rounding_otherwise(StepStart start, DType precision) {
  if (precision == DType::bf16) {
    round_to<BFloat16>(start.weights);
  } else if (precision == DType::f16) {
    round_to<Float16>(start.weights);
  } else {
    move_to_neighbours(start.weights);
  }
  return start;
}

/// What is not finite has nothing to compare with.
bool is_lost(const StepTrace& trace) {
  return trace.status == StepStatus::lost || !std::isfinite(trace.loss);
}

void require_finite(const StepTrace& trace, const std::string& name, std::int64_t step) {
  if (is_lost(trace)) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("{} has loss {} and gradient norm {} at step {} (training has "
                                   "diverged: there is nothing to compare); lower optim.lr{}",
                                   name, std::fabs(trace.loss), std::fabs(trace.grad_norm),
                                   step + 1, trace.loss_scale > 1 ? " or train.loss_scale" : ""));
  }
}

void require_same_tensors(const RunOnMesh& reference, const RunOnMesh& other) {
  if (model::parameter_table(reference.config.model) !=
      model::parameter_table(other.config.model)) {
    throw UserError(
        ExitCode::config,
        format_message(
            "--mesh {} has another model than the reference --mesh {} (their tensors have other "
            "names or shapes: there is nothing to compare); leave the keys of [model] out",
            other.name, reference.name));
  }
}

void tell(const BeforeStep& before_step, bool of_reference, std::int64_t step) {
  if (before_step) {
    before_step(of_reference, step);
  }
}

}  // namespace

Tolerances tolerances_for(const runfile::RunConfig& config) noexcept {
  Tolerances tolerances;
  if (config.train.precision != DType::f32) {
    tolerances.loss = 5e-4;
    tolerances.gradient = 0.1;
    tolerances.rounding = 16;
    tolerances.least_gradient = 30;
  }
  constexpr double usual_tokens = 1024;  // of a step, for which those are
  const auto tokens = static_cast<double>(config.train.global_batch * config.model.context);
  const double noise = std::sqrt(std::max(1.0, usual_tokens / std::max(1.0, tokens)));
  tolerances.loss *= noise;
  tolerances.gradient *= noise;
  return tolerances;
}

MeshComparison train_reference(const RunOnMesh& reference, std::int64_t steps,
                               const Tolerances& tolerances, const BeforeStep& before_step) {
  MeshWalk walk(reference, tolerances.product);
  MeshComparer comparer(reference.config.optim, walk.table(), tolerances);
  comparer.compare_initial_weights(walk.start().weights, walk.start().weights);
  for (std::int64_t step = 0; step < steps; ++step) {
    tell(before_step, true, step);
    const StepStart start = walk.start();
    const StepTrace made = walk.step();
    require_finite(made, "the reference --mesh " + reference.name, step);
    comparer.compare_step(start, made, made, nullptr);
  }
  MeshComparison itself = comparer.finish(walk.disagreements());
  if (itself.skipped_steps == steps) {
    throw UserError(
        ExitCode::config,
        format_message("all {} steps of the reference overflow f16 and are skipped (nothing is "
                       "left to compare); lower train.loss_scale_initial, or give more --steps",
                       steps));
  }
  return itself;
}

MeshComparison compare_meshes(const RunOnMesh& reference, const RunOnMesh& other,
                              std::int64_t steps, const Tolerances& tolerances,
                              const BeforeStep& before_step) {
  require_same_tensors(reference, other);
  const DType precision = other.config.train.precision;
  MeshWalk walk(other, tolerances.product);
  MeshWalk repeat(in_precision_of(other.config, reference), tolerances.product);
  MeshWalk round_otherwise(in_f32(reference));
  MeshComparer comparer(reference.config.optim, repeat.table(), tolerances);
  comparer.compare_initial_weights(repeat.start().weights, walk.start().weights);
  for (std::int64_t step = 0; step < steps; ++step) {
    const StepStart start = walk.start();
    tell(before_step, false, step);
    const StepTrace made = walk.step();
    tell(before_step, true, step);
    const StepTrace expected = repeat.step_from(start);
    if (is_lost(expected) && comparer.has_difference()) {
      break;  // whatever differed may have made it so
    }
    require_finite(expected, "the reference from the weights of --mesh " + other.name, step);
    const StepTrace rounded = round_otherwise.step_from(rounding_otherwise(start, precision));
    comparer.compare_step(start, expected, made, &rounded.gradients);
  }
  return comparer.finish(walk.disagreements());
}

}  // namespace fourfold::train
