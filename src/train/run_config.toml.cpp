// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_config_error.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/suggestion.hpp>
#include <fourfold/train/run_key.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>

namespace fourfold::train {
namespace {

/// A value that a person wrote, with the place it was written at.
struct Entry {
  const RunKey* key;
  Value value;
  Origin origin;
};

/// Everything wrong with a run file, to be told at once and in the order of its lines.
class Problems {
 public:
  void add(const Origin& origin, const std::string& message) {
    found_.push_back({origin.line, origin.column, origin.where() + ": " + message});
  }
  void throw_if_any() {
    if (found_.empty()) {
      return;
    }
    std::ranges::stable_sort(found_, {},
                             [](const Problem& p) { return std::pair(p.line, p.column); });
    std::string text;
    for (const Problem& problem : found_) {
      text += (text.empty() ? "" : "\n") + problem.text;
    }
    throw UserError(ExitCode::config, text);
  }

 private:
  struct Problem {
    std::uint32_t line;
    std::uint32_t column;
    std::string text;
  };
  std::vector<Problem> found_;
};

std::vector<std::string> names_in_table(std::string_view table) {
  std::vector<std::string> names;
  for (const RunKey& key : run_keys()) {
    if (key.table == table) {
      names.push_back(key.name);
    }
  }
  return names;
}

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  std::ranges::transform(run_tables(), std::back_inserter(names), &RunTable::name);
  return names;
}

bool is_table(std::string_view path) {
  return std::ranges::count(run_tables(), path, &RunTable::name) > 0;
}

/// ", did you mean "layers"?" or where the key belongs, or what there is.
std::string hint_for_key(const std::string& table, const std::string& name) {
  const std::vector<std::string> known = names_in_table(table);
  if (const auto near = nearest(name, known)) {
    return fmt::format("; did you mean \"{}\"?", *near);
  }
  for (const RunKey& key : run_keys()) {
    if (key.name == name) {
      return fmt::format("; it belongs in [{}]", key.table);
    }
  }
  return fmt::format("; known here: {}", fmt::join(known, ", "));
}

std::string unknown_key(const std::string& table, const std::string& name) {
  const std::string full_name = table + "." + name;
  const auto planned = planned_keys();
  if (std::ranges::find(planned, full_name) != planned.end()) {
    return fmt::format("{} is not built yet (this version would ignore it) remove it", full_name);
  }
  return fmt::format("unknown key \"{}\" in [{}]{}", name, table, hint_for_key(table, name));
}

std::string unknown_table(const std::string& name) {
  const std::vector<std::string> tables = table_names();
  if (const auto near = nearest(name, tables)) {
    return fmt::format("unknown table [{}]; did you mean [{}]?", name, *near);
  }
  for (const RunKey& key : run_keys()) {
    if (key.name == name) {
      return fmt::format("\"{}\" stands outside a table; it belongs in [{}]", name, key.table);
    }
  }
  return fmt::format("unknown table [{}]; there are [{}]", name, fmt::join(tables, "], ["));
}

/// "an integer of at least 1, or \"auto\"", for messages.
std::string expectation(const RunKey& key) {
  const RunField& field = key.field;
  switch (field.kind) {
    case ValueKind::boolean:
      return "true or false";
    case ValueKind::text_list:
      return "a list of strings";
    case ValueKind::text:
      return field.choices.empty()
                 ? "a string"
                 : fmt::format("one of \"{}\"", fmt::join(field.choices, "\", \""));
    case ValueKind::integer:
    case ValueKind::real:
      break;
  }
  std::string text = field.kind == ValueKind::integer ? "an integer" : "a number";
  const bool has_minimum = key.minimum > field.lowest;
  const bool has_maximum = key.maximum < field.highest;
  if (has_minimum) {
    text += fmt::format(" {} {}", key.above_minimum ? "above" : "of at least", key.minimum);
  }
  if (has_maximum) {
    text += fmt::format("{} at most {}", has_minimum ? " and" : " of", key.maximum);
  }
  if (field.kind == ValueKind::integer && !key.automatic.empty()) {
    text += ", or \"auto\"";
  }
  return text;
}

bool in_bounds(const RunKey& key, double number) {
  return std::isfinite(number) && number >= std::max(key.minimum, key.field.lowest) &&
         number <= std::min(key.maximum, key.field.highest) &&
         !(key.above_minimum && number == key.minimum);
}

std::optional<Value> text_value(const RunKey& key, const std::string& text) {
  const RunField& field = key.field;
  if (field.kind == ValueKind::integer && !key.automatic.empty() && text == "auto") {
    return Value(text);
  }
  const bool allowed = field.choices.empty() || std::ranges::count(field.choices, text) > 0;
  const bool empty_is_wrong = text.empty() && field.choices.empty() && key.automatic.empty();
  if (field.kind == ValueKind::text && allowed && !empty_is_wrong) {
    return Value(text);
  }
  return std::nullopt;
}

std::optional<Value> list_value(const toml::array& array) {
  std::vector<std::string> texts;
  for (const toml::node& element : array) {
    const auto text = element.value_exact<std::string>();
    if (!text || text->empty()) {
      return std::nullopt;
    }
    texts.push_back(*text);
  }
  return Value(texts);
}

/// The node as a value of the key, if type, bounds and choices allow it.
std::optional<Value> typed_value(const RunKey& key, const toml::node& node) {
  const ValueKind kind = key.field.kind;
  if (const auto text = node.value_exact<std::string>()) {
    return text_value(key, *text);
  }
  if (const auto boolean = node.value_exact<bool>(); boolean && kind == ValueKind::boolean) {
    return Value(*boolean);
  }
  if (const auto integer = node.value_exact<std::int64_t>();
      integer && in_bounds(key, static_cast<double>(*integer))) {
    if (kind == ValueKind::integer) {
      return Value(*integer);
    }
    if (kind == ValueKind::real) {
      return Value(static_cast<double>(*integer));
    }
  }
  if (const auto number = node.value_exact<double>();
      number && kind == ValueKind::real && in_bounds(key, *number)) {
    return Value(*number);
  }
  if (const toml::array* array = node.as_array();
      array != nullptr && kind == ValueKind::text_list) {
    return list_value(*array);
  }
  return std::nullopt;
}

/// The node as a person wrote it, shortened to what fits into a message.
std::string shown(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& typed) { out << typed; });
  std::string text = out.str();
  if (node.is_string()) {
    text = to_toml(Value(*node.value_exact<std::string>()));
  }
  std::ranges::replace(text, '\n', ' ');
  constexpr std::size_t most = 60;
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

std::string wrong_value(const RunKey& key, const toml::node& node) {
  std::string message =
      fmt::format("{} = {} is not {}", key.full_name(), shown(node), expectation(key));
  if (const auto text = node.value_exact<std::string>()) {
    if (const auto near = nearest(*text, key.field.choices)) {
      message += fmt::format("; did you mean \"{}\"?", *near);
    }
  }
  if (const auto number = node.value_exact<double>();
      number && key.field.kind == ValueKind::integer && *number == std::floor(*number) &&
      std::abs(*number) < 1e15) {
    message += fmt::format("; write {:.0f}", *number);
  }
  return message;
}

bool is_built(const RunKey& key, const Value& value) {
  const auto* number = std::get_if<std::int64_t>(&value);
  return number == nullptr || *number <= key.built_up_to;
}

/// Walks a TOML document and collects what it says.
class Reader {
 public:
  Reader(std::string file_name, bool keep_unknown_silent)
      : file_name_(std::move(file_name)), skip_unknown_(keep_unknown_silent) {}

  void read(const toml::table& document) { read_table(document, ""); }
  void read_override(const std::string& text);

  /// Throws if anything was wrong.
  std::vector<Entry> entries() {
    problems_.throw_if_any();
    return std::move(entries_);
  }

 private:
  void read_table(const toml::table& table, const std::string& path);
  void read_key(const RunKey& key, const toml::node& node, const Origin& origin);
  void unknown(const Origin& origin, const std::string& message) {
    if (!skip_unknown_) {
      problems_.add(origin, message);
    }
  }
  Origin origin_of(const toml::source_region& region) const {
    return {Origin::Source::file, file_name_, region.begin.line, region.begin.column};
  }

  std::string file_name_;
  bool skip_unknown_;
  Problems problems_;
  std::vector<Entry> entries_;
};

void Reader::read_table(const toml::table& table, const std::string& path) {
  for (const auto& [toml_key, node] : table) {
    const std::string name(toml_key.str());
    const std::string full_name = path.empty() ? name : path + "." + name;
    const Origin origin = origin_of(toml_key.source());
    if (const toml::table* inner = node.as_table(); inner != nullptr && is_table(full_name)) {
      read_table(*inner, full_name);
    } else if (is_table(full_name)) {
      problems_.add(origin,
                    fmt::format("{} is a table; write [{}] above its keys", full_name, full_name));
    } else if (path.empty()) {
      unknown(origin, unknown_table(name));
    } else if (const RunKey* key = find_run_key(full_name)) {
      read_key(*key, node, origin);
    } else {
      unknown(origin, unknown_key(path, name));
    }
  }
}

void Reader::read_key(const RunKey& key, const toml::node& node, const Origin& origin) {
  const std::optional<Value> value = typed_value(key, node);
  if (!value) {
    problems_.add(origin, wrong_value(key, node));
  } else if (!is_built(key, *value)) {
    problems_.add(origin,
                  fmt::format("{} = {} is not built yet (this version runs {} only) set it to {}",
                              key.full_name(), to_toml(*value), key.built_up_to, key.built_up_to));
  } else {
    entries_.push_back({&key, *value, origin});
  }
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// `value` as a TOML document "value = ...". Words that the key takes as text need no quotes.
toml::table override_document(const RunKey& key, std::string_view value) {
  const bool quoted =
      !value.empty() && (value.front() == '"' || value.front() == '\'' || value.front() == '[');
  const bool takes_text =
      key.field.kind == ValueKind::text || key.field.kind == ValueKind::text_list;
  if (!quoted && (takes_text || value == "auto")) {
    const bool as_list = key.field.kind == ValueKind::text_list;
    toml::table document;
    if (as_list) {
      document.insert("value", toml::array{std::string(value)});
    } else {
      document.insert("value", std::string(value));
    }
    return document;
  }
  return toml::parse(fmt::format("value = {}", value));
}

void Reader::read_override(const std::string& text) {
  const Origin origin{Origin::Source::command_line, "--set"};
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    problems_.add(origin, fmt::format("\"{}\" has no \"=\"; write table.key=value", text));
    return;
  }
  const std::string full_name(trimmed(std::string_view(text).substr(0, equals)));
  const std::string_view value_text = trimmed(std::string_view(text).substr(equals + 1));
  const std::size_t dot = full_name.rfind('.');
  const RunKey* key = find_run_key(full_name);
  if (key == nullptr) {
    const std::string table = dot == std::string::npos ? full_name : full_name.substr(0, dot);
    problems_.add(origin, dot != std::string::npos && is_table(table)
                              ? unknown_key(table, full_name.substr(dot + 1))
                              : unknown_table(table));
    return;
  }
  try {
    const toml::table document = override_document(*key, value_text);
    if (document.size() != 1) {
      problems_.add(origin, fmt::format("\"{}\" sets more than one key", full_name));
      return;
    }
    read_key(*key, *document.get("value"), origin);
  } catch (const toml::parse_error& error) {
    problems_.add(origin, fmt::format("{} = {} is no TOML value ({})", full_name, value_text,
                                      error.description()));
  }
}

toml::table parsed(std::string_view text, const std::string& file_name) {
  try {
    return toml::parse(text, file_name);
  } catch (const toml::parse_error& error) {
    const toml::source_position& at = error.source().begin;
    throw UserError(ExitCode::config, fmt::format("{}:{}:{}: {}", file_name, at.line, at.column,
                                                  error.description()));
  }
}

/// The name of the preset that the entries choose last, or empty.
const Entry* chosen_preset(const std::vector<Entry>& entries) {
  const auto found = std::find_if(entries.rbegin(), entries.rend(), [](const Entry& entry) {
    return entry.key->full_name() == "model.preset";
  });
  return found == entries.rend() ? nullptr : &*found;
}

/// Lays preset and entries over the defaults.
EffectiveConfig layered(const std::vector<Entry>& entries) {
  EffectiveConfig effective;
  if (const Entry* entry = chosen_preset(entries)) {
    const auto& preset = std::get<std::string>(entry->value);
    if (!preset.empty()) {
      effective.config.model = model::preset(preset);
      for (const RunKey& key : run_keys()) {
        if (key.table.starts_with("model")) {
          effective.origins[key.full_name()] = {Origin::Source::preset, preset};
        }
      }
    }
  }
  for (const Entry& entry : entries) {
    entry.key->field.set(effective.config, entry.value);
    effective.origins[entry.key->full_name()] = entry.origin;
  }
  return effective;
}

void warn_of_idle_values(EffectiveConfig& effective) {
  for (const RunKey& key : run_keys()) {
    const auto origin = effective.origins.find(key.full_name());
    if (origin == effective.origins.end() || origin->second.where().empty() ||
        key.has_effect(effective.config)) {
      continue;
    }
    effective.warnings.push_back(fmt::format("{}: {} has no effect (it needs {})",
                                             origin->second.where(), key.full_name(),
                                             key.relevance.only_with));
  }
}

}  // namespace

EffectiveConfig parse_run_config(std::string_view toml, const std::string& file_name,
                                 std::span<const std::string> overrides) {
  Reader reader(file_name, false);
  reader.read(parsed(toml, file_name));
  for (const std::string& text : overrides) {
    reader.read_override(text);
  }
  EffectiveConfig effective = layered(reader.entries());
  try {
    resolve(effective.config, effective.origins);
  } catch (const UserError&
               error) {  // the model knows what is wrong, but not on which line it was written
    refuse(error.what(), effective.origins);
  }
  validate(effective.config, effective.origins);
  warn_of_idle_values(effective);
  return effective;
}

RunConfig parse_saved_config(std::string_view toml, const std::string& file_name) {
  Reader reader(file_name, true);
  reader.read(parsed(toml, file_name));
  return layered(reader.entries()).config;
}

EffectiveConfig load_run_config(const std::filesystem::path& file,
                                std::span<const std::string> overrides) {
  const auto unreadable = [&](int reason) {
    return UserError(ExitCode::config,
                     fmt::format("cannot read the run file {} ({}) check its path", file.string(),
                                 std::generic_category().message(reason)));
  };
  if (std::filesystem::is_directory(file)) {
    throw unreadable(EISDIR);
  }
  std::ifstream in(file, std::ios::binary);
  if (!in.is_open()) {
    throw unreadable(errno);
  }
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return parse_run_config(text, file.string(), overrides);
}

}  // namespace fourfold::train
