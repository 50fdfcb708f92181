// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "format/checkpoint_contents.hpp"
#include "repair/rebuilt_save.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/digest.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fourfold::io {
namespace {

/// More than a manifest has.
constexpr std::uint64_t most_manifest_bytes = std::uint64_t{1} << 30;
/// An index without its manifest may have so much, or as much as the payloads.
constexpr std::uint64_t least_index_limit = std::uint64_t{64} << 20;

/// Reads one of the two files that can be rebuilt, if it is there. @return why it cannot be used
Defect read_rebuildable(const std::filesystem::path& folder, const std::string& name,
                        std::uint64_t most_bytes, std::string& contents) {
  const std::filesystem::path path = folder / name;
  const EntryKind kind = kind_of(path);
  if (kind == EntryKind::missing) {
    return fmt::format("{} is missing", name);
  }
  if (kind != EntryKind::file) {
    refuse_repair(folder,
                  format_message("{} is no regular file (a link, for example); remove it", name));
  }
  if (auto defect = read_file(path, most_bytes, contents)) {
    contents.clear();
    return fmt::format("{} {}", name, *defect);
  }
  return std::nullopt;
}

void read_manifest(DamagedStep& step) {
  step.manifest_damage =
      read_rebuildable(step.folder, manifest_name, most_manifest_bytes, step.manifest_text);
  if (step.manifest_damage) {
    return;
  }
  if (const auto damage = manifest_damage(step.manifest_text)) {
    step.manifest_damage = fmt::format("{} {}", manifest_name, *damage);
    return;
  }
  Manifest manifest;
  if (const auto defect = parse_manifest(step.manifest_text, manifest)) {
    refuse_repair(step.folder, format_message("{} is not damaged, but {}", manifest_name, *defect));
  }
  step.manifest = std::move(manifest);
}

std::uint64_t payload_bytes(const DamagedStep& step) {
  std::uint64_t bytes = 0;
  for (const std::string& name : step.payloads) {
    InputFile file;
    bytes += file.open(step.folder / name) ? 0 : file.size_bytes();
  }
  return bytes;
}

/// @pre payloads are listed
void read_index(DamagedStep& step) {
  const std::uint64_t most_bytes =
      step.manifest ? step.manifest->index_bytes : std::max(least_index_limit, payload_bytes(step));
  step.index_damage = read_rebuildable(step.folder, index_name, most_bytes, step.index_bytes);
  if (step.index_damage || !step.manifest) {
    return;
  }
  if (step.index_bytes.size() != step.manifest->index_bytes ||
      crc32c(std::as_bytes(std::span(step.index_bytes))) != step.manifest->index_crc32c) {
    step.index_damage =
        fmt::format("{} is not what the manifest says (its size or CRC-32C differs)", index_name);
  }
}

/// The payload files that are there; nothing else may be.
void list_payloads(DamagedStep& step) {
  const auto names = names_in(step.folder);
  if (!names) {
    refuse_repair(step.folder, "cannot be read");
  }
  std::optional<PayloadNumber> first;
  for (const std::string& name : *names) {
    if (name == manifest_name || name == index_name || is_left_by_file_system(name)) {
      continue;
    }
    const auto number = payload_number(name);
    if (!number) {
      refuse_repair(step.folder, format_message("{} does not belong to a checkpoint", name));
    }
    if (first && number->files != first->files) {
      refuse_repair(step.folder, format_message("{} and {} are payloads of different saves", name,
                                                step.payloads.front()));
    }
    first = number;
    step.payloads.push_back(name);
  }
}

void compare_with_manifest(const DamagedStep& step) {
  std::vector<std::string> expected;
  for (const StoredFile& file : step.manifest->files) {
    expected.push_back(file.name);
    if (!std::ranges::binary_search(step.payloads, file.name)) {
      refuse_repair(step.folder, format_message("{} is missing", file.name));
    }
  }
  for (const std::string& name : step.payloads) {
    if (!std::ranges::binary_search(expected, name)) {
      refuse_repair(step.folder, format_message("{} does not belong to the checkpoint", name));
    }
  }
}

/// Whole, since "." has a name and a folder above. A link keeps its own name and folder: those are
/// where the step is listed.
std::filesystem::path listed_path(const std::filesystem::path& folder, std::error_code& failure) {
  const std::filesystem::path path =
      folder.has_filename() ? folder : folder.parent_path();  // "step-000000010/"
  if (!link_target(path)) {
    return std::filesystem::canonical(path, failure);
  }
  const std::filesystem::path above = path.has_parent_path() ? path.parent_path() : ".";
  return std::filesystem::canonical(above, failure) / path.filename();
}

}  // namespace

void refuse_repair(const std::filesystem::path& folder, const std::string& what) {
  throw UserError(ExitCode::data_corrupt,
                  format_message("{}: {}; nothing was changed", folder.string(), what));
}

DamagedStep look_at_step(const std::filesystem::path& folder) {
  std::error_code failure;
  DamagedStep step;
  step.folder = listed_path(folder, failure);
  if (failure || !std::filesystem::is_directory(step.folder, failure)) {
    throw UserError(
        ExitCode::config,
        format_message("{}: is no folder; name a step-NNNNNNNNN folder", folder.string()));
  }
  read_manifest(step);
  list_payloads(step);
  read_index(step);
  if (step.manifest) {
    compare_with_manifest(step);
  }
  return step;
}

}  // namespace fourfold::io
