// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_file_message.hpp"
#include "run_file_value.toml.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/runfile/run_key.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace fourfold::runfile {
namespace {

/// A value that a person wrote, with the place it was written at.
struct Entry {
  const RunKey* key;
  Value value;
  Origin origin;
};

/// Walks a TOML document and collects what it says.
class Reader {
 public:
  /// @param is_saved  the document is a program's: it may have keys of former versions
  Reader(std::string file_name, bool is_saved)
      : file_name_(std::move(file_name)), is_saved_(is_saved) {}

  void read(const toml::table& document) { read_table(document, ""); }
  void read_override(const std::string& text);

  /// Throws if anything was wrong: all of it, in the order of its lines.
  std::vector<Entry> entries() {
    std::ranges::stable_sort(
        problems_, {}, [](const auto& one) { return std::pair(one.first.line, one.first.column); });
    std::string text;
    for (const auto& [origin, message] : problems_) {
      text += (text.empty() ? "" : "\n  ") + origin.where() + ": " + message;
    }
    if (!problems_.empty()) {
      throw UserError(ExitCode::config, text);
    }
    return std::move(entries_);
  }

 private:
  void read_table(const toml::table& table, const std::string& path);
  void read_key(const RunKey& key, const toml::node& node, const Origin& origin);
  void unknown(const Origin& origin, const std::string& message) {
    problems_.emplace_back(origin, is_saved_
                                       ? message +
                                             " (another version of fourfold has saved this, and it "
                                             "may change the run; read it with that version)"
                                       : message);
  }
  Origin origin_of(const toml::source_region& region) const {
    return {Origin::Source::file, file_name_, region.begin.line, region.begin.column};
  }

  std::string file_name_;
  bool is_saved_;
  std::vector<std::pair<Origin, std::string>> problems_;
  std::vector<Entry> entries_;
};

void Reader::read_table(const toml::table& table, const std::string& path) {
  for (const auto& [toml_key, node] : table) {
    const std::string name(toml_key.str());
    const std::string full_name = path.empty() ? name : fmt::format("{}.{}", path, name);
    const Origin origin = origin_of(toml_key.source());
    const toml::table* const inner = node.as_table();
    if (inner != nullptr && is_table(full_name)) {
      read_table(*inner, full_name);
    } else if (is_table(full_name)) {
      problems_.emplace_back(
          origin, format_message("{} is a table; write [{}] above its keys", full_name, full_name));
    } else if (inner != nullptr && is_saved_ && !table_now(full_name).empty()) {
      read_table(*inner, full_name);
    } else if (path.empty()) {
      unknown(origin, inner != nullptr ? unknown_table(name) : key_outside_table(name));
    } else {
      const FormerKey* const former = is_saved_ ? find_former_key(full_name) : nullptr;
      if (const RunKey* const key = find_run_key(former ? former->now : full_name)) {
        read_key(*key, node, origin);
      } else if (former == nullptr) {
        unknown(origin, unknown_key(path, name));
      }
    }
  }
}

bool holds_nul(const Value& value) {
  const auto in = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  const auto* const text = std::get_if<std::string>(&value);
  const auto* const list = std::get_if<std::vector<std::string>>(&value);
  return (text != nullptr && in(*text)) || (list != nullptr && std::ranges::any_of(*list, in));
}

bool is_path_at_home(const RunKey& key, const Value& value) {
  const auto is_one = [&](std::string_view text) {
    return key.path_after && text.starts_with(*key.path_after) &&
           begins_with_home(text.substr(key.path_after->size()));
  };
  const auto* const text = std::get_if<std::string>(&value);
  const auto* const list = std::get_if<std::vector<std::string>>(&value);
  return (text != nullptr && is_one(*text)) ||
         (list != nullptr && std::ranges::any_of(*list, is_one));
}

void Reader::read_key(const RunKey& key, const toml::node& node, const Origin& origin) {
  const std::optional<Value> value = typed_value(key, node);
  if (!value) {
    problems_.emplace_back(origin, wrong_value(key, node));
  } else if (holds_nul(*value)) {
    problems_.emplace_back(
        origin,
        format_message("{} holds a NUL character, at which the system would end it; leave it out",
                       key.full_name));
  } else if (!is_saved_ && is_path_at_home(key, *value)) {
    problems_.emplace_back(origin, format_message("{} {}", key.full_name, home_is_a_shells));
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
  if (!is_utf8(text)) {
    problems_.emplace_back(origin,
                           format_message("\"{}\" is not UTF-8 (run files and checkpoints are); "
                                          "rename what it names, or name it by a link",
                                          printable(text)));
    return;
  }
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    problems_.emplace_back(origin,
                           format_message("\"{}\" has no \"=\"; write table.key=value", text));
    return;
  }
  const std::string full_name(trimmed(std::string_view(text).substr(0, equals)));
  const std::string_view value_text = trimmed(std::string_view(text).substr(equals + 1));
  const std::size_t dot = full_name.rfind('.');
  const RunKey* key = find_run_key(full_name);
  if (key == nullptr && is_table(full_name)) {
    problems_.emplace_back(
        origin, format_message("{} is a table; write {}.key=value", full_name, full_name));
    return;
  }
  if (key == nullptr) {
    const std::string table = dot == std::string::npos ? full_name : full_name.substr(0, dot);
    problems_.emplace_back(origin, dot == std::string::npos ? key_outside_table(full_name)
                                   : is_table(table) ? unknown_key(table, full_name.substr(dot + 1))
                                                     : unknown_table(table));
    return;
  }
  try {
    const toml::table document = override_document(*key, value_text);
    if (document.size() != 1) {
      problems_.emplace_back(origin, format_message("\"{}\" sets more than one key", full_name));
      return;
    }
    read_key(*key, *document.get("value"), origin);
  } catch (const toml::parse_error& error) {
    // A lone word is taken for half of true or false; the parser knows better about the rest.
    const bool is_word = value_text.find_first_of("\"'[{") == std::string_view::npos;
    problems_.emplace_back(
        origin, format_message("{} = {} is not {}{}", full_name, value_text, expectation(*key),
                               is_word ? "" : format_message(" ({})", error.description())));
  }
}

toml::table parsed(std::string_view text, const std::string& file_name) {
  try {
    return toml::parse(text, file_name);
  } catch (const toml::parse_error& error) {
    const toml::source_position& at = error.source().begin;
    throw UserError(ExitCode::config, format_message("{}:{}:{}: {}", file_name, at.line, at.column,
                                                     error.description()));
  }
}

/// The name of the preset that the entries choose last, or empty.
const Entry* chosen_preset(const std::vector<Entry>& entries) {
  const auto found = std::find_if(entries.rbegin(), entries.rend(), [](const Entry& entry) {
    return entry.key->full_name == "model.preset";
  });
  return found == entries.rend() ? nullptr : &*found;
}

/// Where a preset has a key/value head for each head, heads that a person wrote have one too.
void follow_heads(EffectiveConfig& effective, const std::string& preset) {
  const model::Architecture shape = model::preset(preset);
  const auto is_written = [&](const char* key) { return !effective.origins[key].where().empty(); };
  if (shape.attention.kv_heads == shape.attention.heads && is_written("model.heads") &&
      !is_written("model.kv_heads")) {
    effective.config.model.attention.kv_heads = 0;  // resolve() fills it in
  }
}

bool is_of_model(const RunKey& key) {
  return key.table.starts_with("model");
}

/// Where the run's checkpoints are, and with which of them it begins.
CheckpointConfig named_checkpoint(const std::vector<Entry>& entries) {
  RunConfig named;
  for (const Entry& entry : entries) {
    if (entry.key->table == "checkpoint" || entry.key->table == "log") {
      entry.key->field.set(named, entry.value);
    }
  }
  Origins ignored;
  resolve(named, ignored);
  return named.checkpoint;
}

/// The model of the checkpoint that the run begins with, or goes on from, where the run file has no
/// [model] table; its vocabulary, where only that is not written.
void begin_with_model_of_checkpoint(const std::vector<Entry>& entries,
                                    const ModelOfCheckpoint& model_of, EffectiveConfig& effective) {
  const bool has_table = std::ranges::any_of(entries, [](const Entry& entry) {
    return is_of_model(*entry.key) &&
           (entry.origin.source == Origin::Source::file || entry.key->full_name == "model.preset");
  });
  const bool has_vocab = std::ranges::any_of(entries, [](const Entry& entry) {
    return entry.key->full_name == "model.vocab" || entry.key->full_name == "model.preset";
  });
  const CheckpointConfig checkpoint = named_checkpoint(entries);
  if (!model_of || (has_table && has_vocab) || checkpoint.resume == "never") {
    return;
  }
  std::optional<model::Architecture> found;
  try {
    found = model_of(checkpoint);
  } catch (const UserError&) {
    if (!has_table) {
      throw;
    }  // a model is written: who opens that checkpoint says what is wrong with it
  }
  if (!found) {
    return;
  }
  const std::string place = checkpoint.resume == "auto"
                                ? "the run's newest step in " + checkpoint.dir
                                : "checkpoint.resume";
  for (const RunKey& key : run_keys()) {
    const bool is_taken = has_table ? key.full_name == "model.vocab"
                                    : is_of_model(key) && key.full_name != "model.preset";
    if (is_taken) {
      effective.origins[key.full_name] = {Origin::Source::derived, place};
    }
  }
  if (has_table) {
    effective.config.model.vocab = found->vocab;
  } else {
    effective.config.model = *found;
  }
}

/// The command line may give a key twice, as where a script adds to what a person has written.
void note_replaced(const Entry& entry, const std::vector<Entry>& entries,
                   EffectiveConfig& effective) {
  const auto replaces = [&](const Entry& earlier) {
    return earlier.key == entry.key && earlier.origin.source == Origin::Source::command_line &&
           earlier.value != entry.value;
  };
  const std::span<const Entry> before(entries.data(), &entry);
  if (entry.origin.source == Origin::Source::command_line &&
      std::ranges::any_of(before, replaces)) {
    effective.notes.push_back(
        format_message("{} is given more than once on the command line, with different values: the "
                       "last one counts",
                       entry.key->full_name));
  }
}

/// A family brings its traits along: what was written of them before does not say where they are
/// from.
void set(const Entry& entry, EffectiveConfig& effective) {
  const RunConfig before = effective.config;
  entry.key->field.set(effective.config, entry.value);
  for (const RunKey& key : run_keys()) {
    if (!is_of_model(key) || key.full_name == "model.family") {
      continue;
    }
    const auto origin = effective.origins.find(key.full_name);
    if (origin == effective.origins.end() ||
        key.field.get(before) == key.field.get(effective.config)) {
      continue;
    }
    if (entry.key != &key && !origin->second.where().empty()) {
      effective.notes.push_back(format_message("{}: {} gives way to {}", origin->second.where(),
                                               key.full_name, entry.key->full_name));
    }
    effective.origins.erase(origin);
  }
  effective.origins[entry.key->full_name] = entry.origin;
}

/// Lays preset or checkpoint, and entries, over the defaults.
EffectiveConfig layered(const std::vector<Entry>& entries, const ModelOfCheckpoint& model_of = {}) {
  EffectiveConfig effective;
  begin_with_model_of_checkpoint(entries, model_of, effective);
  if (const Entry* entry = chosen_preset(entries)) {
    const auto& preset = std::get<std::string>(entry->value);
    if (!preset.empty()) {
      effective.config.model = model::preset(preset);
      for (const RunKey& key : run_keys()) {
        if (is_of_model(key)) {
          effective.origins[key.full_name] = {Origin::Source::preset, preset};
        }
      }
    }
  }
  // Of each place, the family before the keys that change one of its traits.
  const auto turn = [](const Entry& entry) {
    return 2 * int{entry.origin.source == Origin::Source::command_line} +
           int{entry.key->full_name != "model.family"};
  };
  for (int now = 0; now < 4; ++now) {
    for (const Entry& entry : entries) {
      if (turn(entry) == now) {
        note_replaced(entry, entries, effective);
        set(entry, effective);
      }
    }
  }
  if (!effective.config.preset.empty()) {
    follow_heads(effective, effective.config.preset);
  }
  return effective;
}

void warn_of_idle_values(EffectiveConfig& effective) {
  for (const RunKey& key : run_keys()) {
    const auto origin = effective.origins.find(key.full_name);
    if (origin == effective.origins.end() || origin->second.where().empty() ||
        key.has_effect(effective.config)) {
      continue;
    }
    effective.warnings.push_back(format_message("{}: {} has no effect (it needs {})",
                                                origin->second.where(), key.full_name,
                                                key.relevance.only_with));
  }
}

}  // namespace

EffectiveConfig parse_run_config(std::string_view toml, const std::string& file_name,
                                 std::span<const std::string> overrides,
                                 const ModelOfCheckpoint& model_of) {
  Reader reader(file_name, false);
  reader.read(parsed(toml, file_name));
  for (const std::string& text : overrides) {
    reader.read_override(text);
  }
  EffectiveConfig effective = layered(reader.entries(), model_of);
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

EffectiveConfig parse_run_config(std::string_view toml, const std::string& file_name,
                                 std::span<const std::string> overrides) {
  return parse_run_config(toml, file_name, overrides, {});
}

RunConfig parse_saved_config(std::string_view toml, const std::string& file_name) {
  Reader reader(file_name, true);
  reader.read(parsed(toml, file_name));
  return layered(reader.entries()).config;
}

std::string run_file_text(const std::filesystem::path& file) {
  constexpr std::uint64_t most_bytes = 16 << 20;
  std::string text;
  if (const auto defect = read_regular_file(file, Links::follow, most_bytes, text)) {
    throw UserError(ExitCode::config,
                    format_message("cannot read the run file {} (it {}); check its path",
                                   file.string(), *defect));
  }
  return text;
}

RunPlaces places_of(const std::filesystem::path& file) {
  const toml::table document = parsed(run_file_text(file), file.string());
  RunPlaces places{.log_dir = document["log"]["dir"].value_or(LogConfig{}.dir),
                   .checkpoint_dir = document["checkpoint"]["dir"].value_or(std::string())};
  if (places.checkpoint_dir.empty()) {
    places.checkpoint_dir = fmt::format("{}/{}", places.log_dir, checkpoints_in_log_dir);
  }
  return places;
}

EffectiveConfig load_run_config(const std::filesystem::path& file,
                                std::span<const std::string> overrides) {
  return load_run_config(file, overrides, {});
}

EffectiveConfig load_run_config(const std::filesystem::path& file,
                                std::span<const std::string> overrides,
                                const ModelOfCheckpoint& model_of) {
  return parse_run_config(run_file_text(file), file.string(), overrides, model_of);
}

std::string log_dir_of(const std::filesystem::path& file, std::span<const std::string> overrides) {
  const toml::table document = parsed(run_file_text(file), file.string());
  std::string found = document["log"]["dir"].value_or(LogConfig{}.dir);
  const RunKey& key = *find_run_key("log.dir");
  for (const std::string_view text : overrides) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || trimmed(text.substr(0, equals)) != key.full_name) {
      continue;
    }
    try {
      found = override_document(key, trimmed(text.substr(equals + 1)))["value"].value_or(found);
    } catch (const toml::parse_error&) {  // one of the things that are wrong
      continue;
    }
  }
  return found;
}

}  // namespace fourfold::runfile
