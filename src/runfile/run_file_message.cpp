// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_file_message.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

namespace fourfold::runfile {
namespace {

std::vector<std::string> names_in_table(std::string_view table) {
  std::vector<std::string> names;
  for (const RunKey& key : keys_of(table)) {
    names.push_back(key.name);
  }
  return names;
}

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  std::ranges::transform(run_tables(), std::back_inserter(names), &RunTable::name);
  return names;
}

/// ", did you mean "layers"?" or where the key belongs, or what there is.
std::string hint_for_key(const std::string& table, const std::string& name) {
  const std::string_view now = table_now(table);
  const std::vector<std::string> known = names_in_table(now.empty() ? table : std::string(now));
  if (const auto meant = keys_meant_by(name); !meant.empty()) {
    return format_message("; did you mean {}?", fmt::join(meant, " or "));
  }
  if (const auto near = likely(name, known)) {
    return format_message("; did you mean \"{}\"?", *near);
  }
  for (const RunKey& key : run_keys()) {
    if (key.name == name) {
      return format_message("; it belongs in [{}]", key.table);
    }
  }
  return format_message("; known here: {}", fmt::join(known, ", "));
}

std::string form(const RunField& field) {
  return field.has_form ? format_message(", or \"{}\" {}", field.form, field.form_condition) : "";
}

}  // namespace

bool is_table(std::string_view path) {
  return std::ranges::count(run_tables(), path, &RunTable::name) > 0;
}

std::string unknown_key(const std::string& table, const std::string& name) {
  if (const FormerKey* const former = find_former_key(fmt::format("{}.{}", table, name))) {
    if (!former->now.empty()) {
      return format_message("the key \"{}\" of [{}] is called {} now", name, table, former->now);
    }
    return format_message("the key \"{}\" of [{}] is gone ({}); leave it out", name, table,
                          former->reason);
  }
  return format_message("unknown key \"{}\" in [{}]{}", name, table, hint_for_key(table, name));
}

std::string unknown_table(const std::string& name) {
  if (const std::string_view now = table_now(name); !now.empty()) {
    return format_message("the table [{}] is called [{}] now", name, now);
  }
  const std::vector<std::string> tables = table_names();
  // [optimizer], [training], [dataset]: the whole word for what is short here.
  const auto shorter = std::ranges::find_if(
      tables, [&](const std::string& table) { return name.starts_with(table); });
  const auto near = shorter != tables.end() ? std::optional(*shorter) : likely(name, tables);
  if (near) {
    return format_message("unknown table [{}]; did you mean [{}]?", name, *near);
  }
  return format_message("unknown table [{}]; there are [{}]", name, fmt::join(tables, "], ["));
}

std::string key_outside_table(const std::string& name) {
  for (const RunKey& key : run_keys()) {
    if (key.name == name) {
      return format_message("\"{}\" stands outside a table; it belongs in [{}]", name, key.table);
    }
  }
  if (const auto meant = keys_meant_by(name); !meant.empty()) {
    return format_message("\"{}\" stands outside a table; did you mean {}?", name,
                          fmt::join(meant, " or "));
  }
  return unknown_table(name);
}

std::string expectation(const RunKey& key) {
  const RunField& field = key.field;
  switch (field.kind) {
    case ValueKind::boolean:
      return "true or false";
    case ValueKind::text_list:
      return "a list of strings";
    case ValueKind::integer_list:
      return format_message("a list of integers of at least {}", key.minimum);
    case ValueKind::text:
      return field.choices.empty()
                 ? (key.automatic.empty() ? "a string that is not empty" : "a string")
                 : format_message("one of \"{}\"", fmt::join(field.choices, "\", \"")) +
                       form(field);
    case ValueKind::integer:
    case ValueKind::real:
      break;
  }
  std::string text = field.kind == ValueKind::integer ? "an integer" : "a number";
  const bool has_minimum = key.minimum > field.lowest;
  const bool has_maximum = key.maximum < field.highest;
  if (has_minimum) {
    text += format_message(" {} {}", key.above_minimum ? "above" : "of at least", key.minimum);
  }
  if (has_maximum) {
    text += format_message("{} at most {}", has_minimum ? " and" : " of", key.maximum);
  }
  if (field.kind == ValueKind::integer && !key.automatic.empty()) {
    text += ", or \"auto\"";
  }
  return text;
}

}  // namespace fourfold::runfile
