// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

#include <fourfold/runfile/run_key.hpp>

#include <algorithm>
#include <array>

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

std::vector<RunKey> joined(std::initializer_list<std::vector<RunKey>> parts) {
  std::vector<RunKey> keys;
  for (const std::vector<RunKey>& part : parts) {
    keys.insert(keys.end(), part.begin(), part.end());
  }
  return keys;
}

std::span<const RunKey> run_keys() {
  static const std::vector<RunKey> keys =
      joined({model_keys(), mesh_keys(), train_keys(), optim_keys(), offload_keys(), data_keys(),
              checkpoint_keys(), log_keys(), watchdog_keys()});
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
      full_names.push_back(key.full_name());
    }
  }
  return full_names;
}

std::span<const RunTable> run_tables() {
  static const std::array<RunTable, 10> tables{{
      {"model",
       "What is trained. A preset fills in the whole table; keys beside it change single values, "
       "and "
       "kv_heads follows heads where the preset has as many of both."},
      {"model.rope_scaling",
       "Rotary positions for contexts longer than the model was first trained for (llama)."},
      {"mesh",
       "How the ranks are arranged. The product of dp, pp, cp and tp is the number of ranks."},
      {"train", "How much and in which steps."},
      {"optim", "Optimizer and learning rate."},
      {"offload", "What lies elsewhere than in device memory (docs/memory.md)."},
      {"data", "Token files, as `fourfold data prepare` writes them."},
      {"checkpoint", "When and where the state is saved, and what a start goes on from."},
      {"log", "What the run tells about itself, and where."},
      {"watchdog", "When a run that stands still is ended."},
  }};
  return tables;
}

}  // namespace fourfold::runfile
