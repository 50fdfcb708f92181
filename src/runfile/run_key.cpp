// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

#include <fourfold/runfile/run_key.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace fourfold::runfile {
namespace {

constexpr std::array former_keys{
    FormerKey{"checkpoint.fast_dir", "checkpoint.node_local_dir"},
    FormerKey{"checkpoint.fast_every_steps", "checkpoint.node_local_every_steps"},
    FormerKey{"checkpoint.fast_keep_last", "checkpoint.node_local_keep_last"},
    FormerKey{"checkpoint.fast_partner", "checkpoint.node_local_partner"},
    FormerKey{
        "optim.post_validation",
        {},
        "updates were tried before the norm of all gradients was known, for 6 % of one schedule"},
    FormerKey{"train.product_choices", "train.matmul_tuning_file"},
    FormerKey{"watch.deadline_s", "watchdog.deadline_s"},
    FormerKey{"watch.enabled", "watchdog.enabled"},
    FormerKey{"watch.silence_s", "watchdog.silence_s"},
    FormerKey{"watch.start_s", "watchdog.start_s"},
};

std::string_view table_of(std::string_view full_name) noexcept {
  return full_name.substr(0, full_name.find('.'));
}

}  // namespace

std::span<const RunKey> run_keys() {
  static const std::vector<RunKey> keys = [] {
    std::vector<RunKey> all;
    for (const RunTable& table : run_tables()) {
      for (RunKey& key : table.keys()) {
        key.table = table.name;
        key.full_name = fmt::format("{}.{}", key.table, key.name);
        all.push_back(std::move(key));
      }
    }
    return all;
  }();
  return keys;
}

const RunKey* find_run_key(std::string_view full_name) {
  const auto keys = run_keys();
  const auto found = std::ranges::find(keys, full_name, &RunKey::full_name);
  return found == keys.end() ? nullptr : &*found;
}

const FormerKey* find_former_key(std::string_view full_name) noexcept {
  const auto* const found = std::ranges::find(former_keys, full_name, &FormerKey::full_name);
  return found == former_keys.end() ? nullptr : found;
}

std::string_view table_now(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(
      former_keys, name, [](const FormerKey& key) { return table_of(key.full_name); });
  return found == former_keys.end() ? std::string_view() : table_of(found->now);
}

std::vector<std::string> keys_called(const std::string& name) {
  std::vector<std::string> full_names;
  for (const RunKey& key : run_keys()) {
    if (key.name == name) {
      full_names.push_back(key.full_name);
    }
  }
  return full_names.empty() ? keys_meant_by(name) : full_names;
}

std::span<const RunTable> run_tables() {
  static const std::array<RunTable, 10> tables{{
      {"model", model_keys,
       "What is trained. A preset fills in the whole table; keys beside it change single values, "
       "and kv_heads follows heads where the preset has as many of both."},
      {"model.rope_scaling", rope_scaling_keys,
       "Rotary positions for contexts longer than the model was first trained for (llama)."},
      {"mesh", mesh_keys,
       "How the ranks are arranged. The product of dp, pp, cp and tp is the number of ranks."},
      {"train", train_keys, "How much and in which steps."},
      {"optim", optim_keys, "Optimizer and learning rate."},
      {"offload", offload_keys, "What lies elsewhere than in device memory (docs/memory.md)."},
      {"data", data_keys, "Token files, as `fourfold data prepare` writes them."},
      {"checkpoint", checkpoint_keys,
       "When and where the state is saved, and what a start goes on from."},
      {"log", log_keys, "What the run tells about itself, and where."},
      {"watchdog", watchdog_keys, "When a run that stands still is ended."},
  }};
  return tables;
}

}  // namespace fourfold::runfile
