// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/runfile/run_key.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fourfold::runfile {

const RunKey& allowed_key(const std::string& name) {
  if (const RunKey* const key = find_run_key(name)) {
    return *key;
  }
  std::vector<std::string> known;
  std::ranges::transform(run_keys(), std::back_inserter(known), &RunKey::full_name);
  const auto near = nearest(name, known);
  throw UserError(ExitCode::config,
                  format_message("--allow-change={}: no key of the run file has this name{}", name,
                                 near ? format_message("; did you mean {}?", *near) : ""));
}

namespace {

void check_allowed_names(std::span<const std::string> allowed) {
  for (const std::string& name : allowed) {
    if (allowed_key(name).on_resume == OnResume::impossible) {
      throw UserError(
          ExitCode::config,
          format_message("--allow-change={} (the checkpoint's tensors depend on it); it "
                         "can only change in a new run",
                         name));
    }
  }
}

/// Keys about one start alone; the run is the same whatever they say.
bool is_of_one_start(const RunKey& key) {
  const std::string name = key.full_name;
  return name == "checkpoint.resume" || name == "checkpoint.weights_only" ||
         name == "log.progress" || key.table == "watchdog";
}

/// Whether a key has the value that it gets where nobody writes one.
bool follows_others(const RunKey& key, const RunConfig& config) {
  if (key.automatic.empty()) {
    return false;
  }
  RunConfig unwritten = config;
  key.field.set(unwritten, std::holds_alternative<std::string>(key.field.get(config))
                               ? Value(std::string())
                               : Value(std::int64_t{0}));
  fill_in_derived_keys(unwritten);
  return key.field.get(unwritten) == key.field.get(config);
}

}  // namespace

std::string ConfigChange::str() const {
  return fmt::format("{}: {} -> {}{}", key, before, after,
                     follows.empty() ? "" : fmt::format(" (follows {})", follows));
}

std::vector<ConfigChange> config_difference(const RunConfig& before, const RunConfig& after) {
  std::vector<ConfigChange> changes;
  for (const RunKey& key : run_keys()) {
    const Value old_value = key.field.get(before);
    const Value new_value = key.field.get(after);
    if (old_value != new_value && !is_of_one_start(key) &&
        (key.has_effect(before) || key.has_effect(after))) {
      ConfigChange change{key.full_name, to_toml(old_value), to_toml(new_value), key.on_resume};
      if (key.on_resume == OnResume::needs_allowance && follows_others(key, before) &&
          follows_others(key, after)) {
        change.rule = OnResume::free;  // it says no more than the change that it follows
        change.follows = key.automatic;
      }
      changes.push_back(std::move(change));
    }
  }
  return changes;
}

std::vector<ConfigChange> config_difference(std::string_view before_toml, const RunConfig& after) {
  return config_difference(parse_saved_config(before_toml, "the checkpoint's configuration"),
                           after);
}

void refuse_changes(std::span<const ConfigChange> changes, std::span<const std::string> allowed) {
  check_allowed_names(allowed);
  std::string refused;
  for (const ConfigChange& change : changes) {
    if (change.rule == OnResume::impossible) {
      refused += format_message("\n  {}  (can never change: the checkpoint's tensors depend on it)",
                                change.str());
    } else if (change.rule == OnResume::needs_allowance &&
               std::ranges::count(allowed, change.key) == 0) {
      refused +=
          format_message("\n  {}  (allow it with --allow-change={})", change.str(), change.key);
    }
  }
  if (!refused.empty()) {
    throw UserError(
        ExitCode::config,
        "the run file differs from the checkpoint's configuration (this would be another run); put "
        "the values back, allow them by name, or begin another run with a log.dir of its own:" +
            refused);
  }
}

}  // namespace fourfold::runfile
