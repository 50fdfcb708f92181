// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/telemetry/metrics.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

namespace fourfold::telemetry {

/// A number of a StepRecord, by the names that files have for it.
struct StepField {
  using Number = std::variant<double StepRecord::*, std::int64_t StepRecord::*>;
  std::string_view key;  ///< in metrics.jsonl
  Number number;
  std::string_view tag = {};            ///< in TensorBoard; empty: it is not there
  double tag_unit = 1;                  ///< of which the curve there shows a multiple
  std::optional<Number> known_by = {};  ///< it is written where this one is positive, or always

  static double value(const Number& number, const StepRecord& record) {
    return std::visit([&](auto member) { return static_cast<double>(record.*member); }, number);
  }
  bool is_known(const StepRecord& record) const {
    return !known_by || value(*known_by, record) > 0;
  }
};

/// In the order in which files have them. The line of the console (step_line.cpp), the charts of
/// the report (report_charts.cpp) and status.json choose among them.
inline constexpr auto step_fields = std::to_array<StepField>({
    {"step", &StepRecord::step},
    {"loss", &StepRecord::loss, "train/loss"},
    {"grad_norm", &StepRecord::grad_norm, "train/grad_norm"},
    {"lr", &StepRecord::lr, "train/lr"},
    {"tokens", &StepRecord::tokens},
    {"step_s", &StepRecord::step_s, "speed/step_s"},
    {"tokens_per_s", &StepRecord::tokens_per_s, "speed/tokens_per_s"},
    {"data_s", &StepRecord::data_s, "speed/data_s"},
    {"loss_scale", &StepRecord::loss_scale, "train/loss_scale", 1, &StepRecord::loss_scale},
    {"skipped_steps", &StepRecord::skipped_steps, "train/skipped_steps", 1,
     &StepRecord::loss_scale},
    {"mfu", &StepRecord::mfu, "speed/mfu", 1, &StepRecord::mfu},
    {"device_used_bytes", &StepRecord::device_used_bytes, "memory/device_used_gib", 1 << 30,
     &StepRecord::device_total_bytes},
    {"device_total_bytes", &StepRecord::device_total_bytes, {}, 1, &StepRecord::device_total_bytes},
});
static_assert(sizeof(StepRecord) == step_fields.size() * sizeof(double), "all numbers are here");

}  // namespace fourfold::telemetry
