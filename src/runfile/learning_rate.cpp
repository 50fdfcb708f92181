// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/runfile/learning_rate.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace fourfold::runfile {
namespace {

constexpr std::array<std::string_view, 4> kind_names{"warmup_cosine", "linear", "constant", "wsd"};

/// How far `step` is on its way from `begin` to `end`: 0 before, 1 from `end` on.
double progress(std::int64_t step, std::int64_t begin, std::int64_t end) {
  if (step >= end) {
    return 1;
  }
  const double way = static_cast<double>(step - begin) / static_cast<double>(end - begin);
  return std::max(0.0, way);
}

}  // namespace

std::string_view name(ScheduleKind kind) noexcept {
  return kind_names[static_cast<std::size_t>(kind)];
}

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

}  // namespace fourfold::runfile
