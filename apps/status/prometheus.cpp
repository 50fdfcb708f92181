// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "status.hpp"

#include <fourfold/base/regular_file.hpp>
#include <fourfold/base/text.hpp>

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace fourfold::status_program {
namespace {

using batch::RunState;
using batch::RunView;

constexpr double hour_s = 3600;

/// The value of a label between its quotes. Bytes that are not UTF-8 were replaced before.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') {
      out += '\\';
    }
    out += c;
  }
  return out;
}

template <class T>
std::optional<double> number(const std::optional<T>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

template <class T>
std::optional<double> if_positive(T value) {
  return number(value > 0 ? std::optional(value) : std::nullopt);
}

struct Gauge {
  const char* name;
  const char* help;
  std::function<std::optional<double>(const RunView&)> value;
};

const std::vector<Gauge>& gauges() {
  static const std::vector<Gauge> all{
      {"step", "Completed steps, all restarts counted",
       [](const RunView& v) { return number<std::int64_t>(v.step); }},
      {"target_steps", "Completed steps at which the run is finished",
       [](const RunView& v) { return if_positive(v.steps); }},
      {"loss_nats", "Training loss of the newest step per token",
       [](const RunView& v) { return v.loss; }},
      {"validation_loss_nats", "Newest validation loss per token",
       [](const RunView& v) { return v.validation_loss; }},
      {"tokens_per_second", "Target tokens per second, all ranks together",
       [](const RunView& v) { return v.tokens_per_s; }},
      {"mfu_ratio", "Model FLOP per second over the peak of the devices",
       [](const RunView& v) { return v.mfu; }},
      {"step_duration_seconds", "Wall time of one step, without evaluation and checkpoints",
       [](const RunView& v) { return v.step_s; }},
      {"remaining_seconds", "Estimated time of training until the last step",
       [](const RunView& v) { return v.remaining_s; }},
      {"job_end_timestamp_seconds", "When the newest job must end",
       [](const RunView& v) { return v.deadline_unix_s; }},
      {"last_word_timestamp_seconds", "Newest sign of life",
       [](const RunView& v) { return if_positive(v.verdict.last_word_unix_s); }},
      {"checkpoint_step", "Step of the newest checkpoint",
       [](const RunView& v) { return number(v.checkpoint_step); }},
      {"checkpoint_timestamp_seconds", "When the newest checkpoint was complete",
       [](const RunView& v) { return v.checkpoint_unix_s; }},
      {"exit_code", "Exit code of a run that has ended",
       [](const RunView& v) { return number(v.verdict.code); }},
      {"stop_requested", "1 while there is a STOP file",
       [](const RunView& v) { return std::optional(v.stop_file ? 1.0 : 0.0); }},
      {"save_requested", "1 while there is a SAVE file",
       [](const RunView& v) { return std::optional(v.save_file ? 1.0 : 0.0); }},
      {"hang_noted", "1 while there is a hang.json",
       [](const RunView& v) { return std::optional(v.hang_file ? 1.0 : 0.0); }},
      {"attempts", "Starts so far",
       [](const RunView& v) { return number<std::size_t>(v.attempts.size()); }},
      {"used_node_seconds", "Nodes times seconds that all starts together took",
       [](const RunView& v) { return std::optional(v.node_hours.used * hour_s); }},
      {"lost_node_seconds", "Part of used_node_seconds that brought the run no further",
       [](const RunView& v) { return std::optional(v.node_hours.lost * hour_s); }},
  };
  return all;
}

std::string label_of(const RunView& view) {
  return fmt::format("run=\"{}\"", escaped(printable(whole_path(view.log_dir).string())));
}

std::string head(std::string_view name, std::string_view help) {
  return fmt::format("# HELP fourfold_run_{0} {1}.\n# TYPE fourfold_run_{0} gauge\n", name, help);
}

/// One sample per state, of which one is 1: the usual form of an enumeration.
std::string states(std::span<const RunView> views) {
  constexpr std::array<RunState, 7> all{RunState::none,    RunState::starting, RunState::running,
                                        RunState::silent,  RunState::stopped,  RunState::failed,
                                        RunState::finished};
  std::string text = head("state", "1 for the state that the run is in, 0 for the others");
  for (const RunView& view : views) {
    for (const RunState state : all) {
      text += fmt::format("fourfold_run_state{{{},state=\"{}\"}} {}\n", label_of(view), name(state),
                          view.verdict.state == state ? 1 : 0);
    }
  }
  return text;
}

}  // namespace

std::string to_prometheus(std::span<const RunView> views) {
  std::string text = states(views);
  for (const Gauge& gauge : gauges()) {
    text += head(gauge.name, gauge.help);
    for (const RunView& view : views) {
      const std::optional<double> value = gauge.value(view);
      if (value && std::isfinite(*value)) {
        text += fmt::format("fourfold_run_{}{{{}}} {}\n", gauge.name, label_of(view), *value);
      }
    }
  }
  return text;
}

}  // namespace fourfold::status_program
