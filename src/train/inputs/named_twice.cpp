// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "named_twice.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/data/dataset.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace fourfold::train {
namespace {

namespace fs = std::filesystem;

using FileIdentity = std::pair<dev_t, ino_t>;

/// A file, and the entry of a list that names it.
struct NamedFile {
  std::string path;
  std::string entry;
  bool by_pattern = false;
};
using NamedFiles = std::map<FileIdentity, NamedFile>;

/// Of the .bin, whichever file of the pair is named.
std::optional<std::pair<FileIdentity, std::string>> identity_of(const std::string& name) {
  std::vector<std::string> candidates{name, name + ".bin"};
  if (fs::path(name).extension() == ".idx") {
    candidates = {fs::path(name).replace_extension(".bin").string()};
  }
  for (const std::string& candidate : candidates) {
    struct stat found {};
    if (::stat(candidate.c_str(), &found) == 0 && S_ISREG(found.st_mode)) {
      return std::pair(FileIdentity(found.st_dev, found.st_ino), candidate);
    }
  }
  return std::nullopt;
}

/// The files of one list. Each that comes again is a warning.
NamedFiles files_of(const std::vector<std::string>& list, const char* key,
                    std::vector<std::string>& warnings) {
  NamedFiles files;
  for (const std::string& entry : list) {
    std::vector<std::string> names;
    try {
      names = data::expand_patterns({&entry, 1});
    } catch (const UserError&) {  // nothing matches: who opens them says so
      continue;
    }
    const bool by_pattern = names.size() != 1 || names.front() != entry;
    for (const std::string& name : names) {
      const auto found = identity_of(name);
      if (!found) {
        continue;
      }
      const auto [place, is_new] =
          files.try_emplace(found->first, NamedFile{found->second, entry, by_pattern});
      if (!is_new) {
        warnings.push_back(format_message(
            "{} is named twice in {}, by \"{}\" and by \"{}\": its samples come twice in an epoch",
            found->second, key, place->second.entry, entry));
      }
    }
  }
  return files;
}

}  // namespace

void note_files_named_twice(runfile::EffectiveConfig& effective) {
  const runfile::DataConfig& data = effective.config.data;
  const NamedFiles training = files_of(data.train, "data.train", effective.warnings);
  const NamedFiles validation = files_of(data.validation, "data.validation", effective.warnings);
  for (const auto& [identity, held_back] : validation) {
    const auto found = training.find(identity);
    if (found == training.end()) {
      continue;
    }
    const NamedFile& trained = found->second;
    if (trained.by_pattern && trained.entry != held_back.entry) {
      throw UserError(
          ExitCode::config,
          runfile::located(
              format_message(
                  "data.train = \"{}\" catches {}, which data.validation names (the "
                  "validation loss would be of text that was trained on); write a pattern "
                  "that leaves it out, like \"*_train.bin\", or name the files one by one",
                  trained.entry, trained.path),
              effective.origins));
    }
    effective.warnings.push_back(
        format_message("{} is in data.train and in data.validation: the validation loss is of text "
                       "that was trained on, and tells nothing of other text",
                       trained.path));
  }
}

}  // namespace fourfold::train
