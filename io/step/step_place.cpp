// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "format/checkpoint_contents.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/step_place.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace fourfold::io {
namespace {

namespace fs = std::filesystem;

/// Of a folder that cannot be looked into nothing is known.
bool is_in(const fs::path& folder, std::string_view name) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(folder / name, ignored));
}

/// The step that a path lies in, or is.
std::optional<fs::path> step_around(const fs::path& path) {
  std::error_code failure;
  // Absolute first: a relative path whose first folder is not there would stay relative.
  fs::path place = fs::weakly_canonical(fs::absolute(path, failure), failure);
  for (; place.has_relative_path(); place = place.parent_path()) {
    if (is_step(place)) {
      return place;
    }
  }
  return std::nullopt;
}

}  // namespace

bool is_step(const fs::path& folder) {
  const bool has_manifest = is_in(folder, manifest_name);
  const bool has_index = is_in(folder, index_name);
  if (has_manifest && has_index) {
    return true;
  }
  if (!step_of_folder(folder.filename().string())) {
    return false;  // other programs have files called MANIFEST.json as well
  }
  const auto names = names_in(folder);
  return has_manifest || has_index ||
         (names && std::ranges::any_of(*names, [](const std::string& name) {
            return payload_number(name).has_value();
          }));
}

bool is_place_in_step(const fs::path& path) {
  return step_around(path).has_value();
}

void refuse_place_in_step(const fs::path& path) {
  if (const auto step = step_around(path)) {
    throw UserError(ExitCode::config,
                    format_message("{}: lies in the checkpoint {}, which would count as damaged "
                                   "with anything else in it; name another place",
                                   path.string(), step->string()));
  }
}

void refuse_step_as_directory(const fs::path& directory) {
  if (is_in(directory, manifest_name)) {
    throw UserError(ExitCode::config,
                    format_message("{}: is a checkpoint, not a folder of checkpoints; name another "
                                   "folder, or the one it lies in",
                                   directory.string()));
  }
  refuse_place_in_step(directory);
}

bool lies_in(const fs::path& path, const fs::path& folder) {
  std::error_code failure;
  const auto inner = fs::weakly_canonical(path, failure);
  const auto outer = fs::weakly_canonical(folder, failure);
  return !outer.empty() &&
         std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

}  // namespace fourfold::io
