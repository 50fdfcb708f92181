// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "step/checkpoint_read.hpp"

#include "format/checkpoint_contents.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/digest.hpp>

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <set>
#include <system_error>
#include <utility>

namespace fourfold::io {
namespace {

constexpr std::uint64_t most_manifest_bytes = std::uint64_t{1} << 30;

Inspection defective(std::string_view file, const std::string& what) {
  return no_checkpoint(fmt::format("{} {}", file, what));
}

/// Of a file that can be made again of the payloads.
Inspection rebuildable(std::string_view file, const std::string& what) {
  Inspection inspection = defective(file, what);
  inspection.is_rebuildable = true;
  return inspection;
}

/// What to do about such a file, where payloads are there to make it of.
std::string repair_advice(const std::filesystem::path& folder) {
  const auto names = names_in(folder);
  const bool has_payloads = names && std::ranges::any_of(*names, [](const std::string& name) {
                              return payload_number(name).has_value();
                            });
  return has_payloads
             ? fmt::format("; if the rest is whole, `fourfold ckpt repair-index {}` makes it again",
                           folder.string())
             : "";
}

/// What this user may not read may be whole: it is neither damaged nor to be worked around.
/// @throws UserError (config)
void require_readable(const std::filesystem::path& file) {
  const RegularFile opened = open_regular_file(file, O_RDONLY, Links::refuse);
  if (opened.error_number == EACCES || opened.error_number == EPERM) {
    throw UserError(
        ExitCode::config,
        format_message("{}: cannot be read ({}), and may be whole; ask its owner for the right to "
                       "read it, or name another checkpoint",
                       file.string(), std::generic_category().message(opened.error_number)));
  }
}

bool is_index_of(const Manifest& manifest, const std::string& index_bytes) {
  return index_bytes.size() == manifest.index_bytes &&
         crc32c(std::as_bytes(std::span(index_bytes))) == manifest.index_crc32c;
}

constexpr const char* other_index = "is not what the manifest says (its size or CRC-32C differs)";

/// The files of the manifest, with their sizes, and no other payloads. What somebody has put beside
/// them is nothing to a reader.
Defect file_defect(const std::filesystem::path& folder, const Manifest& manifest) {
  std::set<std::string> expected{manifest_name, index_name};
  for (const StoredFile& file : manifest.files) {
    expected.insert(file.name);
    require_readable(folder / file.name);
    InputFile opened;
    if (const Defect defect = opened.open(folder / file.name)) {
      return fmt::format("{} {}", file.name, *defect);
    }
    if (opened.size_bytes() != file.bytes) {
      return fmt::format("{} has {} bytes instead of {}", file.name, opened.size_bytes(),
                         file.bytes);
    }
  }
  const auto names = names_in(folder);
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (!expected.contains(name) && payload_number(name)) {
      return fmt::format("{} does not belong to the checkpoint", name);
    }
  }
  return std::nullopt;
}

/// A folder that is named like another step would be taken for newer or older than it is. Other
/// names are for people: a copy may be called as they like.
Defect name_defect(const std::filesystem::path& folder, std::int64_t step) {
  const auto named = step_of_folder(folder.filename().string());
  if (!named || *named == step) {
    return std::nullopt;
  }
  const std::string name = step_folder_name(step);
  if (kind_of(folder.parent_path() / name) != EntryKind::missing) {
    return fmt::format("is of step {}, and {} lies beside it; move this one away", step, name);
  }
  return fmt::format("is of step {}; rename the folder to {}", step, name);
}

}  // namespace

Inspection no_checkpoint(std::string defect) {
  Inspection inspection;
  inspection.defect = std::move(defect);
  return inspection;
}

Inspection parse_contents(const std::filesystem::path& step_directory, std::string manifest_text,
                          std::string index_bytes) {
  auto contents = std::make_shared<CheckpointContents>();
  contents->path = step_directory;
  if (const Defect defect = parse_manifest(manifest_text, contents->manifest)) {
    return defective(manifest_name, *defect);
  }
  const Manifest& manifest = contents->manifest;
  if (!is_index_of(manifest, index_bytes)) {
    return defective(index_name, other_index);
  }
  Defect defect;
  const auto failure =
      comm::capture_failure([&] { defect = parse_index(index_bytes, manifest, contents->index); });
  if (failure && failure->code == ExitCode::config) {  // no damage: this host has no more memory
    throw std::bad_alloc();
  }
  if (failure || defect) {
    return defective(index_name, failure ? failure->message : *defect);
  }
  std::size_t extent = 0;
  for (std::size_t tensor = 0; tensor < contents->index.tensors.size(); ++tensor) {
    contents->first_extent.push_back(extent);
    while (extent < contents->index.extents.size() &&
           contents->index.extents[extent].tensor == tensor) {
      ++extent;
    }
  }
  contents->first_extent.push_back(extent);
  Inspection inspection;
  inspection.contents = std::move(contents);
  inspection.manifest_text = std::move(manifest_text);
  inspection.index_bytes = std::move(index_bytes);
  return inspection;
}

Inspection inspect_head(const std::filesystem::path& step_directory) {
  require_readable(step_directory / manifest_name);
  require_readable(step_directory / index_name);
  std::string manifest_text;
  if (const Defect defect =
          read_file(step_directory / manifest_name, most_manifest_bytes, manifest_text)) {
    return rebuildable(manifest_name, *defect);
  }
  if (const Defect damage = manifest_damage(manifest_text)) {
    return rebuildable(manifest_name, *damage);
  }
  Manifest manifest;
  if (const Defect defect = parse_manifest(manifest_text, manifest)) {
    return defective(manifest_name, *defect);
  }
  std::string index_bytes;
  if (const Defect defect =
          read_file(step_directory / index_name, manifest.index_bytes, index_bytes)) {
    return rebuildable(index_name, *defect);
  }
  if (!is_index_of(manifest, index_bytes)) {
    return rebuildable(index_name, other_index);
  }
  Inspection inspection =
      parse_contents(step_directory, std::move(manifest_text), std::move(index_bytes));
  if (!inspection.defect) {
    inspection.defect = name_defect(step_directory, inspection.contents->manifest.step);
  }
  if (inspection.defect) {
    inspection.contents.reset();
  }
  return inspection;
}

Inspection inspect(const std::filesystem::path& step_directory) {
  Inspection inspection = inspect_head(step_directory);
  if (inspection.is_rebuildable) {
    *inspection.defect += repair_advice(step_directory);
  }
  if (!inspection.defect) {
    inspection.defect = file_defect(step_directory, inspection.contents->manifest);
  }
  if (inspection.defect) {
    inspection.contents.reset();
  }
  return inspection;
}

Inspection inspect_for_all(const std::function<Inspection()>& look,
                           comm::Communicator& communicator) {
  Inspection found;
  comm::run_on_root(communicator, [&] { found = look(); });
  const std::string defect = comm::broadcast_text(communicator, found.defect.value_or(""), 0);
  return defect.empty() ? broadcast_inspection(std::move(found), 0, communicator)
                        : no_checkpoint(defect);
}

Inspection broadcast_inspection(Inspection found, int root, comm::Communicator& communicator) {
  const bool is_root = communicator.rank() == root;
  const std::string path =
      comm::broadcast_text(communicator, is_root ? found.contents->path.string() : "", root);
  std::string manifest = comm::broadcast_text(communicator, found.manifest_text, root);
  std::string index = comm::broadcast_text(communicator, found.index_bytes, root);
  comm::collective_try(communicator, [&] {
    if (is_root) {
      return;
    }
    found = parse_contents(path, std::move(manifest), std::move(index));
    if (found.defect) {
      throw SystemError(ExitCode::node_fault,
                        format_message("{}: rank {} could read the checkpoint and this rank cannot "
                                       "({}): its memory is full or faulty, or the network is",
                                       path, root, *found.defect));
    }
  });
  return found;
}

}  // namespace fourfold::io
