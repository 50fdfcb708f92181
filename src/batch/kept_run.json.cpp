// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/batch/kept_run.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/made_folders.hpp>
#include <fourfold/io/mapped_file.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/run_files.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <set>
#include <system_error>

namespace fourfold::batch {
namespace {
namespace fs = std::filesystem;

using Json = nlohmann::ordered_json;

constexpr const char* record_name = "kept.json";
constexpr const char* run_file_name = "run.toml";
/// Of a run file, "" for itself: a record sets no others.
constexpr std::array<std::string_view, 3> keys{"", "mesh.schedule", "data.tokenizer"};
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;  ///< of a tokenizer's file

/// A name below the folder, of one that cannot lead out of it.
bool is_inside(const fs::path& name) {
  return name.is_relative() && !name.empty() &&
         std::ranges::none_of(name, [](const fs::path& part) { return part == ".."; });
}

void write_file(const fs::path& file, std::string_view bytes) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) {
    throw UserError(ExitCode::cannot_write,
                    format_message("{}: cannot be made ({}); choose another log.dir",
                                   file.parent_path().string(), error.message()));
  }
  io::AtomicFile output(file);
  output.write(bytes);
  output.publish();
}

Json json_of(const KeptRun& kept) {
  Json files = Json::array();
  for (const KeptRun::File& file : kept.files) {
    files.push_back({{"key", file.key},
                     {"value", file.value},
                     {"origin", file.origin.string()},
                     {"copy", file.copy.lexically_relative(kept.folder).string()}});
  }
  return {{"name", kept.name}, {"files", files}};
}

std::vector<KeptRun::File> files_in(const Json& json, const fs::path& folder) {
  std::vector<KeptRun::File> files;
  for (const Json& one : json.at("files")) {
    const fs::path copy = one.at("copy").get<std::string>();
    if (!is_inside(copy)) {
      throw Json::other_error::create(
          501, "a copy that does not lie here: " + printable(copy.string()), nullptr);
    }
    const std::string key = one.at("key");
    if (std::ranges::count(keys, key) == 0) {
      throw Json::other_error::create(501, "a key that names no file: " + printable(key), nullptr);
    }
    files.push_back({.key = key,
                     .value = one.at("value"),
                     .origin = one.at("origin").get<std::string>(),
                     .copy = folder / copy});
  }
  if (files.empty() || !files.front().key.empty()) {
    throw Json::other_error::create(501, "the run file is not the first of its files", nullptr);
  }
  return files;
}

/// The folder of the number-th run of a name, from 1.
fs::path folder_of(const fs::path& submitted, const std::string& name, int number) {
  return submitted / (number == 1 ? name : fmt::format("{}-{}", name, number));
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

void refuse_other_than_folder(const fs::path& submitted) {
  std::error_code ignored;
  const fs::file_status found = fs::symlink_status(submitted, ignored);
  if (fs::exists(found) && !fs::is_directory(found)) {
    throw UserError(
        ExitCode::config,
        format_message("{} is in the way (the run file of each submission is kept in a "
                       "folder of that name, which is no file and no link); move it, or "
                       "choose another log.dir",
                       submitted.string()));
  }
}

/// The number after a name in that of a folder, "NAME" or "NAME-2"; 0: it is of another.
int number_of(const std::string& folder, const std::string& name) {
  if (folder == name) {
    return 1;
  }
  int number = 0;
  const char* const end = folder.data() + folder.size();
  const bool is_of_name = folder.starts_with(name + "-");
  const auto [stop, error] = is_of_name
                                 ? std::from_chars(folder.data() + name.size() + 1, end, number)
                                 : std::from_chars_result{end, std::errc::invalid_argument};
  return error == std::errc{} && stop == end && number > 1 ? number : 0;
}

/// The string after "key=", whose quotes may be left out.
std::string value_in(const std::string& override_text) {
  std::string value = override_text.substr(override_text.find('=') + 1);
  const bool is_quoted = value.size() >= 2 && value.front() == value.back() &&
                         (value.front() == '"' || value.front() == '\'');
  return is_quoted ? value.substr(1, value.size() - 2) : value;
}

bool holds(const fs::path& file, const std::string& bytes) {
  std::string found;
  return !read_regular_file(file, Links::follow, most_bytes, found) && found == bytes;
}

}  // namespace

std::vector<std::string> KeptRun::overrides(std::span<const std::string> typed) const {
  std::vector<std::string> overrides;
  std::set<std::string> named;
  for (const File& file : files) {
    const bool is_typed = std::ranges::any_of(typed, [&](const std::string& one) {
      return one.starts_with(file.key + "=") && value_in(one) != file.value;
    });
    if (!file.key.empty() && !is_typed && named.insert(file.key).second) {
      // A string of JSON is one of TOML.
      overrides.push_back(file.key + "=" + json_text(Json(file.copy.string())));
    }
  }
  return overrides;
}

std::vector<fs::path> KeptRun::changed_origins() const {
  std::vector<fs::path> changed;
  for (const File& file : files) {
    std::string bytes;
    if (!read_regular_file(file.copy, Links::refuse, most_bytes, bytes) &&
        !holds(file.origin, bytes)) {
      changed.push_back(file.origin);
    }
  }
  return changed;
}

std::optional<std::string> why_not_kept(const fs::path& log_dir, const fs::path& run_file) {
  std::error_code ignored;
  const telemetry::RunFiles files(whole_path(log_dir));
  const std::string names = files.submitted().string() + whole_path(run_file).string();
  if (!is_utf8(names) || printable(names) != names) {
    return "its path, or log.dir, is not UTF-8 or has what a terminal does not show";
  }
  return fs::equivalent(run_file, files.config(), ignored)
             ? std::optional<std::string>("it lies where the run writes its own")
             : std::nullopt;
}

KeptRun keep_run(const fs::path& submitted, const std::string& name, const fs::path& run_file,
                 const std::string& text, std::span<const runfile::RunInput> inputs) {
  if (runfile::run_file_text(run_file) != text) {
    throw UserError(ExitCode::config,
                    format_message("{} was changed while it was read; start again when it is saved",
                                   run_file.string()));
  }
  refuse_other_than_folder(submitted);
  int number = 1;
  while (is_there(folder_of(submitted, name, number))) {
    ++number;
  }
  KeptRun kept{.folder = folder_of(submitted, name, number), .name = name, .files = {}};
  io::NewFolder folder(kept.folder, text.size());
  write_file(folder.path() / run_file_name, text);
  kept.files.push_back({.key = "",
                        .value = "",
                        .origin = whole_path(run_file),
                        .copy = kept.folder / run_file_name});
  for (const runfile::RunInput& input : inputs) {
    for (const FileBytes& file : input.files) {
      const fs::path copy = fs::path(input.key) / file.path.filename();
      write_file(folder.path() / copy, file.bytes);
      kept.files.push_back({.key = input.key,
                            .value = input.value,
                            .origin = file.path,
                            .copy = kept.folder / copy});
    }
  }
  write_file(folder.path() / record_name, json_text(json_of(kept), 2) + "\n");
  folder.publish();
  return kept;
}

std::optional<KeptRun> kept_run_of(const fs::path& run_file) {
  const fs::path whole = whole_path(run_file);
  const fs::path folder = whole.parent_path();
  const fs::path record = folder / record_name;
  if (whole.filename() != run_file_name ||
      folder.parent_path().filename() != telemetry::RunFiles("").submitted() || !is_there(record)) {
    return std::nullopt;
  }
  constexpr std::uint64_t most_record_bytes = 1 << 20;
  const auto json = parse_json<Json>(io::text_of_file(record, most_record_bytes), record.string(),
                                     "submit the run anew");
  return read_json(
      json,
      [&](const Json& value) {
        return KeptRun{
            .folder = folder, .name = value.at("name"), .files = files_in(value, folder)};
      },
      [&](const std::string& why) {
        throw UserError(ExitCode::data_corrupt,
                        format_message("{} is not what fourfold writes ({}); submit the run anew",
                                       record.string(), why));
      });
}

std::optional<KeptRun> kept_run_named(const fs::path& submitted, const std::string& name,
                                      const fs::path& run_file) {
  std::optional<KeptRun> newest;
  int highest = 0;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(submitted, ignored)) {
    const int number = number_of(entry.path().filename().string(), name);
    if (number <= highest) {
      continue;
    }
    auto kept = kept_run_of(entry.path() / run_file_name);
    if (kept && kept->name == name && kept->files.front().origin == whole_path(run_file)) {
      newest = std::move(kept);
      highest = number;
    }
  }
  return newest;
}

void forget(const KeptRun& kept) {
  std::error_code ignored;
  for (const KeptRun::File& file : kept.files) {
    fs::remove(file.copy, ignored);
    if (file.copy.parent_path() != kept.folder) {
      fs::remove(file.copy.parent_path(), ignored);  // where it is empty
    }
  }
  fs::remove(kept.folder / record_name, ignored);
  fs::remove(kept.folder / "options", ignored);  // of array.sbatch
  fs::remove(kept.folder, ignored);
  fs::remove(kept.folder.parent_path(), ignored);
}

}  // namespace fourfold::batch
