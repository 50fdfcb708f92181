// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::runfile {
namespace {

bool same_tensors(const model::Architecture& a, const model::Architecture& b) {
  return std::ranges::equal(model::parameter_table(a), model::parameter_table(b),
                            [](const model::ParameterSpec& x, const model::ParameterSpec& y) {
                              return x.name == y.name && x.shape == y.shape;
                            });
}

/// Whether the same weights compute something else when the key changes. Dropout and what is frozen
/// are of training alone; rotary positions have no table, and a shorter or longer sequence is the
/// same function.
bool changes_function(const RunKey& key, const RunConfig& config) {
  return key.name != "dropout" && key.name != "frozen" &&
         !(key.name == "context" && config.model.positions.are_rotary());
}

std::vector<ConfigChange> model_changes(const RunConfig& before, const RunConfig& after) {
  std::vector<ConfigChange> changes;
  for (const RunKey& key : run_keys()) {
    const Value old_value = key.field.get(before);
    const Value new_value = key.field.get(after);
    if (key.table.starts_with("model") && old_value != new_value &&
        (key.has_effect(before) || key.has_effect(after))) {
      changes.push_back(
          {key.full_name(), to_toml(old_value), to_toml(new_value),
           changes_function(key, after) ? OnResume::needs_allowance : OnResume::free});
    }
  }
  return changes;
}

}  // namespace

std::vector<ConfigChange> refuse_other_model(const model::Architecture& before,
                                             const model::Architecture& after,
                                             std::span<const std::string> allowed,
                                             const std::string& checkpoint) {
  std::ranges::for_each(allowed, allowed_key);
  RunConfig there;
  RunConfig here;
  there.model = before;
  here.model = after;
  const bool fits = same_tensors(before, after);
  std::vector<ConfigChange> changes = model_changes(there, here);
  std::string refused;
  for (const ConfigChange& change : changes) {
    if (change.rule == OnResume::free || (fits && std::ranges::count(allowed, change.key) > 0)) {
      continue;
    }
    refused += format_message("\n  {} is {}, the checkpoint has {}", change.key, change.after,
                              change.before);
    refused += fits ? fmt::format("  (allow it with --allow-change={})", change.key) : "";
  }
  if (!refused.empty()) {
    throw UserError(
        ExitCode::config,
        format_message(
            "the model of the run file is not that of {} ({}); leave out [model] to take "
            "the checkpoint's, or put these values right:{}",
            checkpoint,
            fits ? "its weights would compute something else" : "its tensors are others",
            MadeLines{refused}));
  }
  return changes;
}

}  // namespace fourfold::runfile
