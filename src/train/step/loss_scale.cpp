// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/enum_name.hpp>
#include <fourfold/train/loss_scale.hpp>

#include <algorithm>
#include <array>

namespace fourfold::train {

std::string_view name(StepStatus status) noexcept {
  constexpr std::array<std::string_view, 3> names{"applied", "skipped", "lost"};
  return name_in(names, status);
}

LossScale::LossScale(const runfile::TrainConfig& config)
    : in_use_(config.precision == DType::f16),
      moves_(in_use_ && config.loss_scale == 0),
      window_(config.loss_scale_window),
      lowest_(config.loss_scale_min) {
  if (in_use_) {
    state_.scale = moves_ ? config.loss_scale_initial : config.loss_scale;
  }
}

StepStatus LossScale::finish_step(bool finite) {
  if (finite) {
    state_.good_steps += moves_ ? 1 : 0;
    if (state_.good_steps >= window_) {
      state_.scale = std::min(2 * state_.scale, runfile::largest_loss_scale);
      state_.good_steps = 0;
    }
    return StepStatus::applied;
  }
  ++state_.skipped_steps;
  if (!moves_ || state_.scale <= lowest_) {
    return StepStatus::lost;
  }
  state_.scale /= 2;
  state_.good_steps = 0;
  return StepStatus::skipped;
}

void LossScale::restore(const LossScaleState& state) {
  FOURFOLD_EXPECT(state.scale >= 1 && state.good_steps >= 0 && state.skipped_steps >= 0);
  const std::int64_t scale = moves_ ? std::max(state.scale, lowest_) : state_.scale;
  state_ = {.scale = scale,
            .good_steps = moves_ ? state.good_steps : 0,
            .skipped_steps = state.skipped_steps};
}

}  // namespace fourfold::train
