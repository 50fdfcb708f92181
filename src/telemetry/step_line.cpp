// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/telemetry/console.hpp>
#include <fourfold/telemetry/human_text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fourfold::telemetry {
namespace {

constexpr std::int64_t warm_up_steps = 3;
constexpr double time_constant_steps = 50;

double share(double part, double whole) {
  return whole > 0 ? part / whole * 100 : 0;
}

double gib(std::int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 30);
}

/// " (job ends in 5h50m: stops near step 18300)" when the run will not be done in time.
std::string deadline_text(const StepRecord& record, const LineContext& context) {
  if (context.deadline_unix_s <= 0 || !context.remaining_s) {
    return {};
  }
  const double left_s = std::max(context.deadline_unix_s - context.now_s, 0.0);
  if (left_s >= *context.remaining_s) {
    return {};
  }
  const auto remaining_steps = static_cast<double>(context.steps - record.step);
  const auto reached = static_cast<std::int64_t>(remaining_steps * left_s / *context.remaining_s);
  return fmt::format(" (job ends in {}: stops near step {})", duration_text(left_s),
                     record.step + reached);
}

}  // namespace

void RemainingTime::start(std::int64_t first_step, std::int64_t steps, double now_s) {
  *this = {};
  first_step_ = anchor_step_ = last_step_ = first_step;
  steps_ = steps;
  anchor_s_ = last_s_ = now_s;
}

void RemainingTime::step(std::int64_t step, double step_s, double now_s) {
  const std::int64_t covered = step - last_step_;
  last_step_ = step;
  last_s_ = now_s;
  if (step <= first_step_ + warm_up_steps) {
    anchor_step_ = step;
    anchor_s_ = now_s;
    return;
  }
  const double weight =
      busy_s_ == 0 ? 1 : 1 - std::exp(-static_cast<double>(covered) / time_constant_steps);
  mean_step_s_ += weight * (step_s - mean_step_s_);
  busy_s_ += step_s * static_cast<double>(covered);
}

std::optional<double> RemainingTime::remaining_s() const {
  if (busy_s_ == 0) {
    return last_step_ >= steps_ ? std::optional(0.0) : std::nullopt;
  }
  const double idle_s = std::max(last_s_ - anchor_s_ - busy_s_, 0.0);
  const double idle_per_step_s = idle_s / static_cast<double>(last_step_ - anchor_step_);
  return static_cast<double>(std::max<std::int64_t>(steps_ - last_step_, 0)) *
         (mean_step_s_ + idle_per_step_s);
}

std::string step_line(const StepRecord& record, const LineContext& context) {
  const double done = share(static_cast<double>(record.step), static_cast<double>(context.steps));
  std::string line =
      fmt::format("step {}/{} {:.1f}% loss {:.4f} gnorm {:.3g} lr {:.2e}", record.step,
                  context.steps, done, record.loss, record.grad_norm, record.lr);
  if (record.loss_scale > 0) {
    line += fmt::format(" scale {:.0f} skipped {}", record.loss_scale, record.skipped_steps);
  }
  line += fmt::format(" tok/s {}", count_text(record.tokens_per_s));
  if (context.ranks > 1) {
    line += fmt::format(" ({}/rank)",
                        count_text(record.tokens_per_s / static_cast<double>(context.ranks)));
  }
  if (record.mfu > 0) {
    line += fmt::format(" mfu {:.1f}%", 100 * record.mfu);
  }
  line += fmt::format(" {} data {:.0f}%", duration_text(record.step_s),
                      share(record.data_s, record.step_s));
  if (context.device_total_bytes > 0) {
    line += fmt::format(" hbm {:.1f}/{:.1f}GiB", gib(context.device_used_bytes),
                        gib(context.device_total_bytes));
  }
  if (context.last_checkpoint_s) {
    line += fmt::format(" ckpt {} ago",
                        duration_text(std::max(context.now_s - *context.last_checkpoint_s, 0.0)));
  }
  line += " eta " + (context.remaining_s ? duration_text(*context.remaining_s) : "--");
  return line + deadline_text(record, context);
}

}  // namespace fourfold::telemetry
