// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "submission_check.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/train/token_settings.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace fourfold::submit {
namespace {

namespace fs = std::filesystem;

/// Below a folder of / that this node has: then what is missing is missing.
bool can_be_seen(const std::string& name) {
  const fs::path whole = whole_path(name);
  auto part = whole.begin();
  std::error_code ignored;
  return ++part == whole.end() || fs::exists("/" / *part, ignored);
}

/// Why a folder cannot be made, with what is in its way: "/data/notes is no folder"; empty where it
/// can, or is there.
std::string why_not_made(const std::string& name) {
  std::error_code ignored;
  // As it is written: "file/../x" is not made either.
  fs::path there = fs::absolute(name, ignored);
  while (there.has_relative_path() &&
         fs::symlink_status(there, ignored).type() == fs::file_type::not_found) {
    there = there.parent_path();
  }
  return !fs::is_directory(there, ignored)           ? there.string() + " is no folder"
         : ::access(there.c_str(), W_OK | X_OK) != 0 ? there.string() + " may not be written"
                                                     : "";
}

/// Where the run is to save, if the folder is there or can be made.
void check_checkpoint_dir(const runfile::EffectiveConfig& effective, bool warns) {
  const std::string& name = effective.config.checkpoint.dir;
  if (!can_be_seen(name)) {
    log::warning(
        format_message("checkpoint.dir = \"{}\" is not to be seen on this node: whether the nodes "
                       "of the job can make it is not checked",
                       name));
    return;
  }
  const std::string why = why_not_made(name);
  if (why.empty()) {
    return;
  }
  if (warns) {
    log::warning(
        format_message("checkpoint.dir = \"{}\" cannot be made on this node ({}): whether the "
                       "nodes of the job can is not checked",
                       name, why));
    return;
  }
  throw UserError(
      ExitCode::config,
      runfile::located(
          format_message("checkpoint.dir = \"{}\" cannot be made ({}); correct the name, or give "
                         "--skip-path-checks where only the job's nodes have it",
                         name, why),
          effective.origins));
}

/// Each node has one of its own: what this one says is a hint.
void tell_node_local_dir(const std::string& name) {
  const std::string why = name.empty() ? "" : why_not_made(name);
  if (!why.empty()) {
    log::warning(
        format_message("checkpoint.node_local_dir = \"{}\" could not be made on this node ({}); if "
                       "the nodes of the job are no different, correct the name",
                       name, why));
  }
}

}  // namespace

void check_paths(const runfile::EffectiveConfig& effective, bool warns) {
  std::vector<std::string> missing;
  const runfile::DataConfig& data = effective.config.data;
  const auto look_at = [&](const char* key, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (train::names_token_files(name)) {
        continue;
      }
      if (warns || !can_be_seen(name)) {
        log::warning(
            format_message("{} = \"{}\" is not to be seen on this node: whether the nodes of the "
                           "job have it is not checked",
                           key, name));
      } else {
        missing.push_back(format_message("{} = \"{}\"", key, name));
      }
    }
  };
  look_at("data.train", data.train);
  look_at("data.validation", data.validation);
  check_checkpoint_dir(effective, warns);
  tell_node_local_dir(effective.config.checkpoint.node_local_dir);
  if (!missing.empty()) {
    throw UserError(
        ExitCode::config,
        runfile::located(format_message("{}: there is no such file; correct the name, or give "
                                        "--skip-path-checks where only the job's nodes have it",
                                        fmt::join(missing, ", ")),
                         effective.origins));
  }
}

}  // namespace fourfold::submit
