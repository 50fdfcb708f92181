// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

namespace fourfold::runfile {
namespace {

using enum OnResume;

RunField member(auto path) {
  return field(&RunConfig::optim, path);
}

RunField schedule_member(auto path) {
  return field(&RunConfig::optim, &OptimConfig::schedule, path);
}

bool is_local(const RunConfig& config) {
  return config.mesh.dp_mode == DataParallelMode::local;
}

bool is_nesterov(const RunConfig& config) {
  return is_local(config) && config.optim.outer == OuterOptimizerKind::nesterov;
}

}  // namespace

std::vector<RunKey> optim_keys() {
  const auto kind_is = [](ScheduleKind kind, bool wanted) {
    return [=](const RunConfig& config) { return (config.optim.schedule.kind == kind) == wanted; };
  };
  const Relevance decays{"a schedule that decays", kind_is(ScheduleKind::constant, false)};
  const auto rule_is_one_of = [](auto... kinds) {
    return [=](const RunConfig& config) { return ((config.optim.name == kinds) || ...); };
  };
  using enum OptimizerKind;
  const Relevance adams{"optim.name = \"adamw\" or \"adam\"", rule_is_one_of(adamw, adam)};
  const Relevance nesterov{"mesh.dp_mode = \"local\" and optim.outer = \"nesterov\"", is_nesterov};
  return {
      {.name = "name",
       .field = named_field(&RunConfig::optim, &OptimConfig::name),
       .meaning = "AdamW (decoupled weight decay), Adam (decay added to the gradient) or SGD with "
                  "momentum.",
       .on_resume = impossible},
      {.name = "lr",
       .field = schedule_member(&LearningRateSchedule::lr),
       .meaning = "Learning rate after the warm-up.",
       .minimum = 0,
       .on_resume = needs_allowance},
      {.name = "schedule",
       .field = named_field(&RunConfig::optim, &OptimConfig::schedule, &LearningRateSchedule::kind),
       .meaning = "How the rate falls after the warm-up: half a cosine, a line, not at all, or "
                  "(wsd) a line over the last cooldown_steps only.",
       .on_resume = needs_allowance},
      {.name = "warmup_steps",
       .field = schedule_member(&LearningRateSchedule::warmup_steps),
       .unit = "updates",
       .meaning = "Updates over which the rate rises linearly to lr, with every schedule.",
       .minimum = 0,
       .on_resume = needs_allowance},
      {.name = "decay_steps",
       .field = schedule_member(&LearningRateSchedule::decay_steps),
       .unit = "updates",
       .meaning = "Updates, counted from the first, after which min_lr is reached. Write it down "
                  "if train.steps will be raised later: the schedule then stays what it was.",
       .minimum = 1,
       .automatic = "train.steps",
       .relevance = decays,
       .on_resume = needs_allowance},
      {.name = "min_lr",
       .field = schedule_member(&LearningRateSchedule::min_lr),
       .meaning = "Rate at the end of the decay and after it.",
       .minimum = 0,
       .relevance = decays,
       .on_resume = needs_allowance},
      {.name = "cooldown_steps",
       .field = schedule_member(&LearningRateSchedule::cooldown_steps),
       .unit = "updates",
       .meaning = "Length of the decay at the end of wsd.",
       .minimum = 1,
       .automatic = "a tenth of optim.decay_steps",
       .relevance = {"optim.schedule = \"wsd\"", kind_is(ScheduleKind::wsd, true)},
       .on_resume = needs_allowance},
      {.name = "beta1",
       .field = member(&OptimConfig::beta1),
       .meaning = "Decay of the mean of gradients.",
       .minimum = 0,
       .maximum = 0.9999999,
       .relevance = adams,
       .on_resume = needs_allowance},
      {.name = "beta2",
       .field = member(&OptimConfig::beta2),
       .meaning = "Decay of the mean of squared gradients.",
       .minimum = 0,
       .maximum = 0.9999999,
       .relevance = adams,
       .on_resume = needs_allowance},
      {.name = "epsilon",
       .field = member(&OptimConfig::epsilon),
       .meaning = "Added to the root of the second moment.",
       .minimum = 0,
       .above_minimum = true,
       .relevance = adams,
       .on_resume = needs_allowance},
      {.name = "momentum",
       .field = member(&OptimConfig::momentum),
       .meaning = "Momentum without dampening; 0: plain SGD.",
       .minimum = 0,
       .maximum = 0.9999999,
       .relevance = {"optim.name = \"sgd\"", rule_is_one_of(sgd)},
       .on_resume = needs_allowance},
      {.name = "weight_decay",
       .field = member(&OptimConfig::weight_decay),
       .meaning = "Weight decay of matrices and embeddings; norms and biases never decay.",
       .minimum = 0,
       .on_resume = needs_allowance},
      {.name = "clip_norm",
       .field = member(&OptimConfig::clip_norm),
       .meaning = "Gradients are scaled down to this global L2 norm; 0: no clipping.",
       .minimum = 0,
       .on_resume = needs_allowance},
      {.name = "stochastic_rounding",
       .field = member(&OptimConfig::stochastic_rounding),
       .meaning = "Weights are rounded from their f32 masters to bf16 up or down at random, so "
                  "that on average nothing is lost; the random numbers are the same on every mesh. "
                  "false: to nearest. Only with train.precision = \"bf16\".",
       .on_resume = needs_allowance},
      // What local replicas do when they meet.
      {.name = "outer",
       .field = named_field(&RunConfig::optim, &OptimConfig::outer),
       .meaning = "What local replicas go on with: the average of their weights, or (nesterov, as "
                  "in DiLoCo) what a step of SGD with Nesterov momentum makes of the difference to "
                  "the last one.",
       .relevance = {"mesh.dp_mode = \"local\"", is_local},
       .on_resume = needs_allowance},
      {.name = "outer_lr",
       .field = member(&OptimConfig::outer_lr),
       .meaning = "Learning rate of that step.",
       .minimum = 0,
       .maximum = 100,
       .above_minimum = true,
       .relevance = nesterov,
       .on_resume = needs_allowance},
      {.name = "outer_momentum",
       .field = member(&OptimConfig::outer_momentum),
       .meaning = "Its momentum.",
       .minimum = 0,
       .maximum = 0.9999999,
       .relevance = nesterov,
       .on_resume = needs_allowance},
  };
}

}  // namespace fourfold::runfile
