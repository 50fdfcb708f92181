// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/amount.hpp>
#include <fourfold/base/contract.hpp>
#include <fourfold/runfile/learning_rate.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace fourfold::runfile {
namespace {

/// How far `step` is on its way from `begin` to `end`: 0 before, 1 from `end` on.
double progress(std::int64_t step, std::int64_t begin, std::int64_t end) {
  if (step >= end) {
    return 1;
  }
  return std::max(0.0, ratio(step - begin, end - begin));
}

}  // namespace

double learning_rate(const LearningRateSchedule& schedule, std::int64_t step) {
  FOURFOLD_EXPECT(step >= 0);
  const std::int64_t warmup = schedule.warmup_steps;
  const std::int64_t decay = schedule.decay_steps;
  if (step < warmup) {
    return schedule.lr * static_cast<double>(step + 1) / static_cast<double>(warmup);
  }
  const double span = schedule.min_lr - schedule.lr;
  switch (schedule.kind) {
    case ScheduleKind::constant:
      return schedule.lr;
    case ScheduleKind::linear:
      return schedule.lr + span * progress(step, warmup, decay);
    case ScheduleKind::wsd:
      return schedule.lr + span * progress(step, decay - schedule.cooldown_steps, decay);
    case ScheduleKind::warmup_cosine:
      break;
  }
  const double angle = std::numbers::pi * progress(step, warmup, decay);
  return schedule.min_lr - span * 0.5 * (1.0 + std::cos(angle));
}

std::string rate_eta(const LearningRateSchedule& before, const LearningRateSchedule& now,
                     std::int64_t made, std::int64_t steps) {
  FOURFOLD_EXPECT(made >= 1 && made < steps);
  std::string text =
      fmt::format("the learning rate was {:.4g} at update {} and is {:.4g} at update {}",
                  learning_rate(before, made - 1), made, learning_rate(now, made), made + 1);
  if (now.kind == ScheduleKind::constant) {
    return text;
  }
  return text +
         (now.decay_steps <= made
              ? fmt::format(": optim.min_lr, since the decay ended at update {}", now.decay_steps)
              : fmt::format("; it comes to optim.min_lr = {:.4g} after update {}", now.min_lr,
                            now.decay_steps));
}

bool ends_at_rate_zero(const LearningRateSchedule& now, std::int64_t made, std::int64_t steps) {
  FOURFOLD_EXPECT(made >= 0 && made < steps);
  const bool is_over = now.kind != ScheduleKind::constant && now.decay_steps <= made;
  return now.lr == 0 || (is_over && made >= now.warmup_steps && now.min_lr == 0);
}

}  // namespace fourfold::runfile
