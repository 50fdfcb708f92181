// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"
#include "format/checkpoint_contents.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fourfold::io {

/// A step folder looked at without its payloads.
struct Inspection {
  std::shared_ptr<const CheckpointContents> contents;  ///< null when there is a defect
  std::string manifest_text;
  std::string index_bytes;
  Defect defect;                ///< with the name of the file
  bool is_rebuildable = false;  ///< the defect, where all payloads are there
};

/// None.
Inspection no_checkpoint(std::string defect);

/// Checks manifest, index, and that exactly the payload files are there, with their sizes. Local.
Inspection inspect(const std::filesystem::path& step_directory);
/// Of a folder that may hold a part of the payload files only: checks manifest and index. Local.
Inspection inspect_head(const std::filesystem::path& step_directory);

/// The part of it that needs no file system.
Inspection parse_contents(const std::filesystem::path& step_directory, std::string manifest_text,
                          std::string index_bytes);

/// Runs `look` on rank 0 and gives what it found to all, a defect too. Collective.
/// @throws on all ranks alike what `look` throws, and SystemError (node_fault) naming the rank when
///   one cannot make of the same bytes what rank 0 made of them
Inspection inspect_for_all(const std::function<Inspection()>& look,
                           comm::Communicator& communicator);

/// Gives what the rank `root` has found, and what holds together, to all. Collective.
/// @throws SystemError (node_fault) on all ranks alike, as inspect_for_all()
Inspection broadcast_inspection(Inspection found, int root, comm::Communicator& communicator);

}  // namespace fourfold::io
