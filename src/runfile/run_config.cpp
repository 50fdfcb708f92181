// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/runfile/run_key.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace fourfold::runfile {

std::string Origin::str() const {
  switch (source) {
    case Source::default_value:
      return "default";
    case Source::preset:
      return "preset " + text;
    case Source::derived:
      return "from " + text;
    case Source::file:
      return format_message("{}:{}", text, line);
    case Source::command_line:
      break;
  }
  return "--set";
}

std::string Origin::where() const {
  switch (source) {
    case Source::file:
      return format_message("{}:{}:{}", text, line, column);
    case Source::command_line:
      return "--set";
    default:
      return {};
  }
}

void log_remarks(const EffectiveConfig& effective) {
  for (const std::string& warning : effective.warnings) {
    log::warning(warning);
  }
  for (const std::string& note : effective.notes) {
    log::info(note);
  }
}

void fill_in_derived_keys(RunConfig& config) {
  LearningRateSchedule& schedule = config.optim.schedule;
  if (schedule.decay_steps == 0) {
    schedule.decay_steps = std::max<std::int64_t>(config.train.steps, 1);
  }
  if (schedule.cooldown_steps == 0) {
    schedule.cooldown_steps = std::max<std::int64_t>(schedule.decay_steps / 10, 1);
  }
  if (config.checkpoint.dir.empty()) {
    config.checkpoint.dir = fmt::format("{}/{}", config.log.dir, checkpoints_in_log_dir);
  }
}

void resolve(RunConfig& config, Origins& origins) {
  const RunConfig before = config;
  config.model = config.model.resolved();
  fill_in_derived_keys(config);
  for (const RunKey& key : run_keys()) {
    if (key.field.get(before) != key.field.get(config)) {
      origins[key.full_name] = {Origin::Source::derived, key.automatic};
    }
  }
}

EffectiveConfig explained(const RunConfig& saved, const std::string& place) {
  EffectiveConfig effective{.config = saved, .origins = {}, .warnings = {}, .notes = {}};
  const RunConfig unwritten;
  for (const RunKey& key : run_keys()) {
    if (key.field.get(saved) == key.field.get(unwritten)) {
      continue;
    }
    bool follows = false;
    if (!key.automatic.empty()) {
      RunConfig without = saved;
      key.field.set(without, key.field.get(unwritten));
      Origins ignored;
      try {
        resolve(without, ignored);
        follows = key.field.get(without) == key.field.get(saved);
      } catch (const UserError&) {  // it cannot be left out
      }
    }
    effective.origins[key.full_name] = {Origin::Source::derived, follows ? key.automatic : place};
  }
  return effective;
}

Remedies run_remedies() {
  return {.host_memory =
              "use a smaller model, model.context or train.micro_batch, leave less to the host "
              "(offload.optimizer, offload.activations), or more ranks on more hosts; `fourfold "
              "plan` shows what most of them take",
          .device_memory =
              "use a smaller train.micro_batch, train.recompute = \"full\", "
              "train.deterministic_attention = false, a higher mesh.zero, offload.optimizer or "
              "more ranks; `fourfold plan` shows what most of them take"};
}

}  // namespace fourfold::runfile
