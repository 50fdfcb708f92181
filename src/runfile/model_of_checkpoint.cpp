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
/// are of training alone; only learned positions have a table, and a shorter or longer sequence is
/// the same function.
bool changes_function(const std::string& key, const model::Architecture& model) {
  return key != "model.dropout" && key != "model.frozen" &&
         !(key == "model.context" && model.positions.kind != model::PositionTraits::Kind::learned);
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
  std::vector<ConfigChange> changes = config_difference(there, here);
  std::string refused;
  for (ConfigChange& change : changes) {
    change.rule = changes_function(change.key, after) ? OnResume::needs_allowance : OnResume::free;
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
        format_message("the model of the run file is not that of {} ({}); leave out [model] to "
                       "take the checkpoint's, or put these values right:{}",
                       checkpoint,
                       fits ? "its weights would compute something else" : "its tensors are others",
                       MadeLines{refused}));
  }
  return changes;
}

}  // namespace fourfold::runfile
