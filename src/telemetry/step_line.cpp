// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/amount.hpp>
#include <fourfold/telemetry/console.hpp>
#include <fourfold/telemetry/human_text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::telemetry {
namespace {

constexpr std::int64_t warm_up_steps = 3;
constexpr double time_constant_steps = 50;
/// A step that took longer than so many means, since the job was suspended in it say, counts as so
/// many: the rest of the run will not be like it.
constexpr double most_means = 4;

double share(double part, double whole) {
  return whole > 0 ? part / whole * 100 : 0;
}

/// A piece of the line, which gives way where there is no room for it.
struct Part {
  std::string text;
  int worth = 0;           ///< what is worth least goes first
  std::string brief = {};  ///< what it becomes before it goes; or nothing
  int whole_worth = 0;     ///< of that the brief one lacks
};

/// " (job ends in 5h50m: stops near step 18300)" when the run will not be done in time.
std::optional<Part> deadline_part(const StepRecord& record, const LineContext& context) {
  if (context.deadline_unix_s <= 0 || !context.remaining_s) {
    return std::nullopt;
  }
  const double left_s = std::max(context.deadline_unix_s - context.now_s, 0.0);
  if (left_s >= *context.remaining_s) {
    return std::nullopt;
  }
  const auto remaining_steps = static_cast<double>(context.steps - record.step);
  const auto reached = static_cast<std::int64_t>(remaining_steps * left_s / *context.remaining_s);
  const std::string ends = fmt::format(" (job ends in {}", duration_text(left_s));
  return Part{fmt::format("{}: stops near step {})", ends, record.step + reached), 12, ends + ")",
              8};
}

/// In the order in which they are shown.
std::vector<Part> parts_of(const StepRecord& record, const LineContext& context) {
  const double done = context.steps > 0 ? ratio(record.step, context.steps) * 100 : 0;
  std::vector<Part> parts{{fmt::format("step {}/{}", record.step, context.steps), 16},
                          {fmt::format(" {:.1f}%", done), 10},
                          {fmt::format(" loss {:.4f}", record.loss), 13},
                          {fmt::format(" gnorm {:.3g}", record.grad_norm), 7},
                          {fmt::format(" lr {:.2e}", record.lr), 5}};
  if (record.loss_scale > 0) {
    parts.push_back(
        {fmt::format(" scale {:.0f} skipped {}", record.loss_scale, record.skipped_steps), 3});
  }
  parts.push_back({fmt::format(" tok/s {}", count_text(record.tokens_per_s)), 14});
  if (context.ranks > 1) {
    const double per_rank = record.tokens_per_s / context.ranks;
    parts.push_back({fmt::format(" ({}/rank)", count_text(per_rank)), 1});
  }
  if (record.mfu > 0) {
    parts.push_back({fmt::format(" mfu {:.1f}%", 100 * record.mfu), 6});
  }
  parts.push_back({fmt::format(" {}", duration_text(record.step_s)), 9});
  parts.push_back({fmt::format(" data {:.0f}%", share(record.data_s, record.step_s)), 2});
  if (context.device_total_bytes > 0) {
    parts.push_back({fmt::format(" hbm {:.1f}/{:.1f}GiB", gib(context.device_used_bytes),
                                 gib(context.device_total_bytes)),
                     4});
  }
  if (context.last_checkpoint_s) {
    const double ago_s = std::max(context.now_s - *context.last_checkpoint_s, 0.0);
    parts.push_back({fmt::format(" ckpt {} ago", duration_text(ago_s)), 2});
  }
  parts.push_back(
      {" eta " + (context.remaining_s ? duration_text(*context.remaining_s) : "--"), 15});
  if (auto deadline = deadline_part(record, context)) {
    parts.push_back(std::move(*deadline));
  }
  return parts;
}

/// "[=====>      ] " for a share of 0 to 1.
std::string bar(double done, int cells) {
  const auto filled = static_cast<int>(std::clamp(done, 0.0, 1.0) * cells);
  std::string text(filled, '=');
  if (filled < cells) {
    text += '>';
  }
  text.resize(cells, ' ');
  return "[" + text + "] ";
}

std::string joined(const std::vector<Part>& parts) {
  std::string line;
  for (const Part& part : parts) {
    line += part.text;
  }
  return line;
}

/// Shortens or takes away what is worth least.
/// @pre there are parts
void make_room(std::vector<Part>& parts) {
  const auto worth = [](const Part& part) {
    return part.brief.empty() ? part.worth : part.whole_worth;
  };
  const auto least = std::ranges::min_element(parts, {}, worth);
  if (least->brief.empty()) {
    parts.erase(least);
  } else {
    least->text = std::exchange(least->brief, {});
  }
}

}  // namespace

void RemainingTime::start(std::int64_t first_step, std::int64_t steps, double now_s) {
  *this = {};
  first_step_ = anchor_step_ = last_step_ = first_step;
  steps_ = steps;
  anchor_s_ = last_s_ = now_s;
}

void RemainingTime::step(std::int64_t step, double step_s, double now_s) {
  const auto covered = static_cast<double>(step - last_step_);
  last_step_ = step;
  last_s_ = now_s;
  if (step <= first_step_ + warm_up_steps) {
    anchor_step_ = step;
    anchor_s_ = now_s;
    return;
  }
  const double weight = busy_s_ == 0 ? 1 : 1 - std::exp(-covered / time_constant_steps);
  const double usual_s = busy_s_ == 0 ? step_s : std::min(step_s, most_means * mean_step_s_);
  mean_step_s_ += weight * (usual_s - mean_step_s_);
  busy_s_ += step_s * covered;
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
  return joined(parts_of(record, context));
}

std::string bar_line(const StepRecord& record, const LineContext& context, std::size_t columns) {
  constexpr int wide = 24;
  constexpr int narrow = 8;
  const double done = ratio(record.step, std::max<std::int64_t>(context.steps, 1));
  std::vector<Part> parts = parts_of(record, context);
  parts.insert(parts.begin(), Part{bar(done, wide), 11, bar(done, narrow), 0});
  while (parts.size() > 1 && joined(parts).size() > columns) {
    make_room(parts);
  }
  return joined(parts).substr(0, columns);
}

}  // namespace fourfold::telemetry
