// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"
#include "format/checkpoint_contents.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::io {

/// A step folder whose index or manifest may be damaged, as it was found.
struct DamagedStep {
  std::filesystem::path folder;
  std::string manifest_text;         ///< empty when it cannot be read
  std::optional<Manifest> manifest;  ///< when it is intact
  std::string index_bytes;           ///< empty when it cannot be read
  Defect manifest_damage;            ///< with the name of the file
  /// With an intact manifest whatever differs from what it says, else only what cannot be read.
  Defect index_damage;
  std::vector<std::string> payloads;  ///< names of the payload files, in order
};

/// Reads index and manifest, and which payloads are there. Local.
/// @throws UserError: config when it is no folder; data_corrupt when a file is a link, does not
///   belong to a checkpoint or is missing, or the manifest is intact and none that this program
///   knows
DamagedStep look_at_step(const std::filesystem::path& folder);

/// @throws UserError (data_corrupt): "FOLDER: WHAT; nothing was changed"
[[noreturn]] void refuse_repair(const std::filesystem::path& folder, const std::string& what);

}  // namespace fourfold::io
