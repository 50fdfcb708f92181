// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How a key of the run file is described, and the list of all keys. A key's default is that of its
/// member in RunConfig.
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fourfold::runfile {

enum class ValueKind : std::uint8_t { boolean, integer, real, text, text_list, integer_list };

/// A value on its way between TOML and RunConfig. An integer key that is left automatic holds the
/// text "auto".
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>,
                           std::vector<std::int64_t>>;

/// How one member of RunConfig is read and written. `set` expects the alternative that belongs to
/// `kind` (or "auto" for integers), within the key's bounds and choices.
struct RunField {
  ValueKind kind = ValueKind::boolean;
  std::function<Value(const RunConfig&)> get;
  std::function<void(RunConfig&, const Value&)> set;
  /// text keys with fixed words; "true" and "false" among them need no quotes in the run file
  std::vector<std::string> choices;
  // Of text keys that also take words too many to list:
  std::string form = {};            ///< "every:K"
  std::string form_condition = {};  ///< "with K of at least 1"
  std::function<bool(const std::string&)> has_form = {};
  bool takes_integers = false;  ///< a number in the run file is taken for its digits
  double lowest = std::numeric_limits<double>::lowest();  ///< of the member's type
  double highest = std::numeric_limits<double>::max();
};

/// A condition under which a key matters at all.
struct Relevance {
  std::string only_with;  ///< "optim.name = \"sgd\""; empty: always
  std::function<bool(const RunConfig&)> holds;
};

struct RunKey {
  std::string table = {};
  std::string name;
  RunField field;
  /// of texts that are paths: what stands before the path; others do not begin with it
  std::optional<std::string_view> path_after = {};
  std::string unit = {};     ///< "steps", "sequences", "MB", "nats", ... or empty
  std::string meaning = {};  ///< one or two sentences
  double minimum = std::numeric_limits<double>::lowest();
  double maximum = std::numeric_limits<double>::max();
  bool above_minimum = false;  ///< the minimum itself is refused
  std::string automatic = {};  ///< integers may be "auto", texts empty; what they become then
  Relevance relevance = {};
  OnResume on_resume = OnResume::free;
  std::string full_name = {};  ///< "table.name"

  bool has_effect(const RunConfig& config) const {
    return !relevance.holds || relevance.holds(config);
  }
};

/// All keys: tables in the order of the run file, keys in the order they are printed.
std::span<const RunKey> run_keys();
/// Those of one table.
inline auto keys_of(std::string_view table) {
  return std::views::filter(run_keys(), [table](const RunKey& key) { return key.table == table; });
}

/// The key called "table.name", or nullptr.
const RunKey* find_run_key(std::string_view full_name);

/// A key that run files had once. Configurations that were saved then have it still.
struct FormerKey {
  std::string_view full_name;
  std::string_view now = {};     ///< the full name that its value is read under; none: it is gone
  std::string_view reason = {};  ///< it is gone
};
/// The one called "table.name", or nullptr.
const FormerKey* find_former_key(std::string_view full_name) noexcept;
/// What a table that run files had once is called now; empty: there was none of this name, or all
/// in it is gone.
std::string_view table_now(std::string_view name) noexcept;

/// The tables in their order, with one sentence each.
struct RunTable {
  std::string name;
  std::vector<RunKey> (*keys)();  ///< still without the table's name: run_keys() has them with it
  std::string meaning;
};
std::span<const RunTable> run_tables();

/// A value as it is written in TOML: shortest text that reads back to the same bits.
std::string to_toml(const Value& value);
/// The key's value as it is written in TOML; automatic values that are not resolved yet stay words.
std::string value_text(const RunKey& key, const RunConfig& config);

/// The full names of the keys that are called `name` in their tables, in the order of the run file:
/// "train.steps" for "steps". Where none is, of those that keys_meant_by() it.
std::vector<std::string> keys_called(const std::string& name);

/// What nanoGPT, Megatron-LM, transformers, DeepSpeed and TorchTitan call a key: a hint in
/// messages, never an alias.
struct FieldName {
  std::string_view name;
  std::string_view key;  ///< full name
};
std::span<const FieldName> all_field_names() noexcept;
/// The full names of the keys that other trainers call `name`, with "-" or "_", whatever its case.
std::vector<std::string> keys_meant_by(std::string name);

/// Of programs that do what a run file says: which of its keys help.
Remedies run_remedies();

}  // namespace fourfold::runfile
