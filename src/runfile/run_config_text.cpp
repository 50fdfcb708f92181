// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/runfile/run_key.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

namespace fourfold::runfile {
namespace {

/// A TOML basic string. @throws UserError (config): what is no UTF-8 could not be read again
std::string toml_string(std::string_view text) {
  if (!is_utf8(text)) {
    throw UserError(
        ExitCode::config,
        format_message("\"{}\" cannot be written into a run file (it is not UTF-8); use a "
                       "name in UTF-8",
                       printable(text)));
  }
  std::string out = "\"";
  for (const char c : text) {
    const unsigned char byte = c;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// The shortest text that reads back to the same double and that TOML takes for a float.
std::string real_text(double number) {
  std::string text = fmt::format("{}", number);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string comment(const RunKey& key, const EffectiveConfig& effective) {
  const auto origin = effective.origins.find(key.full_name);
  // The name of a run file may hold any bytes; a comment of TOML may not.
  std::string text =
      origin == effective.origins.end() ? Origin{}.str() : printable(origin->second.str());
  if (!key.has_effect(effective.config)) {
    text += fmt::format("; no effect without {}", key.relevance.only_with);
  }
  return text;
}

/// A value that is printed as a comment. One that is derived: who uses the print as a run file gets
/// it again, or, having changed what it follows, the one that is right then. A default without
/// effect: nobody needs to be warned of it.
bool goes_without_saying(const RunKey& key, const EffectiveConfig& effective) {
  const auto found = effective.origins.find(key.full_name);
  const Origin origin = found == effective.origins.end() ? Origin{} : found->second;
  const bool follows_key =  // and not a checkpoint, which another start may not have
      origin.source == Origin::Source::derived && origin.text == key.automatic;
  return follows_key ||
         (origin.source == Origin::Source::default_value && !key.has_effect(effective.config));
}

std::string default_text(const RunKey& key) {
  const std::string text = value_text(key, RunConfig{});
  return key.automatic.empty()
             ? text
             : fmt::format("{}: {}", text == "\"\"" ? "empty" : "auto", key.automatic);
}

std::string condition(const RunKey& key) {
  std::string text;
  if (!key.relevance.only_with.empty()) {
    text += fmt::format(" Only with {}.", key.relevance.only_with);
  }
  return text;
}

std::string choices(const RunKey& key) {
  std::vector<std::string> words = key.field.choices;
  if (key.field.has_form) {
    words.push_back(key.field.form);
  }
  std::erase(words, "");
  return words.empty() ? "" : fmt::format(" One of {}.", fmt::join(words, ", "));
}

std::string key_help(const RunKey& key) {
  const std::string unit = key.unit.empty() ? "" : fmt::format(" [{}]", key.unit);
  return fmt::format("  {} = {}{}\n      {}\n", key.name, default_text(key), unit,
                     key.meaning + choices(key) + condition(key));
}

std::string table_help(const RunTable& table) {
  std::string out = fmt::format("[{}]\n  {}\n", table.name, table.meaning);
  for (const RunKey& key : keys_of(table.name)) {
    out += key_help(key);
  }
  return out;
}

std::string markdown_cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.insert(at, "\\");
  }
  return text;
}

/// All tables with a line for each key.
template <class LineOf>
std::string in_tables(const LineOf& line_of) {
  std::string out;
  for (const RunTable& table : run_tables()) {
    out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", table.name);
    for (const RunKey& key : keys_of(table.name)) {
      out += line_of(key);
    }
  }
  return out;
}

std::string markdown_rule(const RunKey& key) {
  switch (key.on_resume) {
    case OnResume::free:
      return "yes";
    case OnResume::needs_allowance:
      return "if allowed";
    case OnResume::impossible:
      break;
  }
  return "no";
}

}  // namespace

std::string to_toml(const Value& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) {
    return *boolean ? "true" : "false";
  }
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return fmt::format("{}", *integer);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return real_text(*number);
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    return toml_string(*text);
  }
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value)) {
    return fmt::format("[{}]", fmt::join(*numbers, ", "));
  }
  std::vector<std::string> words;
  for (const std::string& text : std::get<std::vector<std::string>>(value)) {
    words.push_back(toml_string(text));
  }
  return fmt::format("[{}]", fmt::join(words, ", "));
}

std::string value_text(const RunKey& key, const RunConfig& config) {
  const Value value = key.field.get(config);
  const auto* number = std::get_if<std::int64_t>(&value);
  if (number != nullptr && *number == 0 && !key.automatic.empty()) {
    return "\"auto\"";
  }
  return to_toml(value);
}

std::string print_run_config(const EffectiveConfig& effective) {
  return in_tables([&](const RunKey& key) {
    const std::string setting =
        fmt::format("{}{} = {}", goes_without_saying(key, effective) ? "# " : "", key.name,
                    value_text(key, effective.config));
    return fmt::format("{:<40}  # {}\n", setting, comment(key, effective));
  });
}

std::string to_toml(const RunConfig& config) {
  return in_tables([&](const RunKey& key) {
    return fmt::format("{} = {}\n", key.name, value_text(key, config));
  });
}

std::string run_file_help() {
  std::string out = "Keys of the run file (TOML). --set table.key=value overrides one.\n";
  for (const RunTable& table : run_tables()) {
    out += "\n" + table_help(table);
  }
  return out;
}

std::string run_file_help(const std::string& part) {
  const std::string name =
      part.starts_with('[') && part.ends_with(']') ? part.substr(1, part.size() - 2) : part;
  const auto tables = run_tables();
  if (const auto table = std::ranges::find(tables, name, &RunTable::name); table != tables.end()) {
    return table_help(*table);
  }
  std::string out;
  const RunKey* const key = find_run_key(name);
  for (const std::string& full_name :
       key != nullptr ? std::vector{name} : keys_called(name.substr(name.rfind('.') + 1))) {
    const RunKey& found = *find_run_key(full_name);
    out += fmt::format("{}[{}]\n{}", out.empty() ? "" : "\n", found.table, key_help(found));
  }
  return out;
}

std::string run_file_markdown() {
  std::string out;
  for (const RunTable& table : run_tables()) {
    out += fmt::format(
        "{}## [{}]\n\n{}\n\n| key | default | unit | meaning | may change on resume "
        "|\n|---|---|---|---|---|\n",
        out.empty() ? "" : "\n", table.name, table.meaning);
    for (const RunKey& key : keys_of(table.name)) {
      out += fmt::format(
          "| `{}` | {} | {} | {} | {} |\n", key.name, markdown_cell(default_text(key)), key.unit,
          markdown_cell(key.meaning + choices(key) + condition(key)), markdown_rule(key));
    }
  }
  return out;
}

}  // namespace fourfold::runfile
