// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/runfile/run_key.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace fourfold::runfile {

std::string_view name(ContextMode mode) noexcept {
  constexpr std::array<std::string_view, 3> names{"ring", "ulysses", "allgather"};
  return names[static_cast<std::size_t>(mode)];
}

std::string_view name(HostCollectives collectives) noexcept {
  constexpr std::array<std::string_view, 4> names{"auto", "direct", "ring", "tree"};
  return names[static_cast<std::size_t>(collectives)];
}

std::string_view name(CudaGraphs graphs) noexcept {
  constexpr std::array<std::string_view, 3> names{"auto", "true", "false"};
  return names[static_cast<std::size_t>(graphs)];
}

std::string_view name(ZeroKeep keep) noexcept {
  constexpr std::array<std::string_view, 2> names{"micro_batch", "step"};
  return names[static_cast<std::size_t>(keep)];
}

std::string_view name(GradientReduce reduce) noexcept {
  constexpr std::array<std::string_view, 3> names{"auto", "step", "micro_batch"};
  return names[static_cast<std::size_t>(reduce)];
}

std::string_view name(DataParallelMode mode) noexcept {
  constexpr std::array<std::string_view, 2> names{"sync", "local"};
  return names[static_cast<std::size_t>(mode)];
}

std::string_view name(OuterOptimizerKind kind) noexcept {
  constexpr std::array<std::string_view, 2> names{"average", "nesterov"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name(OptimizerKind kind) noexcept {
  constexpr std::array<std::string_view, 3> names{"adamw", "adam", "sgd"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name(ProgressMode mode) noexcept {
  constexpr std::array<std::string_view, 4> names{"auto", "bar", "plain", "none"};
  return names[static_cast<std::size_t>(mode)];
}

std::string Origin::str() const {
  switch (source) {
    case Source::default_value:
      return "default";
    case Source::preset:
      return "preset " + text;
    case Source::derived:
      return "from " + text;
    case Source::file:
      return fmt::format("{}:{}", text, line);
    case Source::command_line:
      break;
  }
  return "--set";
}

std::string Origin::where() const {
  switch (source) {
    case Source::file:
      return fmt::format("{}:{}:{}", text, line, column);
    case Source::command_line:
      return "--set";
    default:
      return {};
  }
}

void resolve(RunConfig& config, Origins& origins) {
  const RunConfig before = config;
  config.model = config.model.resolved();
  LearningRateSchedule& schedule = config.optim.schedule;
  if (schedule.decay_steps == 0) {
    schedule.decay_steps = std::max<std::int64_t>(config.train.steps, 1);
  }
  if (schedule.cooldown_steps == 0) {
    schedule.cooldown_steps = std::max<std::int64_t>(schedule.decay_steps / 10, 1);
  }
  if (config.checkpoint.dir.empty()) {
    config.checkpoint.dir = config.log.dir + "/checkpoints";
  }
  for (const RunKey& key : run_keys()) {
    if (key.field.get(before) != key.field.get(config)) {
      origins[key.full_name()] = {Origin::Source::derived, key.automatic};
    }
  }
}

}  // namespace fourfold::runfile
