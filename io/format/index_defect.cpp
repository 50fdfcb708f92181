// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "checksum/file_region.hpp"
#include "format/checkpoint_contents.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fourfold::io {
namespace {

bool fits(std::uint64_t offset, std::uint64_t bytes, std::uint64_t limit) {
  return bytes <= limit && offset <= limit - bytes;
}

Defect tensor_defect(const StoredTensor& tensor, const StoredTensor* previous,
                     const Manifest& manifest) {
  if (previous != nullptr && previous->id >= tensor.id) {
    return "is out of order or there twice";
  }
  if (!stored_bytes(tensor.shape, tensor.dtype)) {
    return fmt::format("has the impossible shape {}", tensor.shape.str());
  }
  const auto digest = manifest.digests.find(tensor.id);
  if (digest == manifest.digests.end() || digest->second != tensor.digest) {
    return "has another digest than in the manifest";
  }
  return std::nullopt;
}

Defect extent_defect(const StoredExtent& extent, DType dtype, const Manifest& manifest,
                     const Index& index) {
  const StoredFile& file = manifest.files[extent.file];
  const CrcTable& table = index.tables[extent.file];
  if (stored_bytes(extent.box.extent, dtype) != extent.bytes || extent.bytes == 0) {
    return fmt::format("extent {} has {} bytes, which its box {} has not", extent.number,
                       extent.bytes, extent.box.str());
  }
  if (!fits(extent.byte_offset, extent.bytes, file.bytes)) {
    return fmt::format("extent {} leaves {}", extent.number, file.name);
  }
  if (!fits(extent.first_chunk, chunks_of(extent.bytes), table.chunks)) {
    return fmt::format("extent {} has no place in the CRC table of {}", extent.number, file.name);
  }
  return std::nullopt;
}

/// Extents and CRC tables of one file lie apart.
Defect overlap_in_files(const Manifest& manifest, const Index& index) {
  std::vector<std::vector<FileRegion>> regions;
  for (const CrcTable& table : index.tables) {
    regions.push_back({{table.byte_offset, table.chunks * 4}});
  }
  for (const StoredExtent& extent : index.extents) {
    regions[extent.file].push_back({extent.byte_offset, extent.bytes});
  }
  for (std::size_t file = 0; file < regions.size(); ++file) {
    std::ranges::sort(regions[file], {}, &FileRegion::byte_offset);
    const auto overlap = [](const FileRegion& a, const FileRegion& b) {
      return b.byte_offset < a.byte_offset + a.bytes;
    };
    if (std::ranges::adjacent_find(regions[file], overlap) != regions[file].end()) {
      return fmt::format("has extents that share bytes of {}", manifest.files[file].name);
    }
  }
  return std::nullopt;
}

}  // namespace

Defect index_defect(const Manifest& manifest, const Index& index) {
  for (std::size_t file = 0; file < manifest.files.size(); ++file) {
    const CrcTable& table = index.tables[file];
    if (table.chunks > manifest.files[file].bytes / 4 ||
        !fits(table.byte_offset, table.chunks * 4, manifest.files[file].bytes)) {
      return fmt::format("places the CRC table of {} outside it", manifest.files[file].name);
    }
  }
  if (index.tensors.size() != manifest.digests.size()) {
    return fmt::format("has {} tensors and the manifest {}", index.tensors.size(),
                       manifest.digests.size());
  }
  auto extent = index.extents.begin();
  for (std::size_t i = 0; i < index.tensors.size(); ++i) {
    const StoredTensor& tensor = index.tensors[i];
    const auto named = [&](const std::string& what) {
      return fmt::format("tensor {} {}", tensor.id.str(), what);
    };
    if (auto defect = tensor_defect(tensor, i == 0 ? nullptr : &tensor - 1, manifest)) {
      return named(*defect);
    }
    std::vector<Box> boxes;
    Digest sum;
    for (; extent != index.extents.end() && extent->tensor == i; ++extent) {
      if (extent->number != std::ssize(boxes)) {
        return named("has extents out of order");
      }
      if (auto defect = extent_defect(*extent, tensor.dtype, manifest, index)) {
        return named(*defect);
      }
      boxes.push_back(extent->box);
      sum += extent->digest;
    }
    if (auto defect = cover_defect(tensor.shape, boxes)) {
      return named(*defect);
    }
    if (sum != tensor.digest) {
      return named("has extents whose digests do not add up to its own");
    }
  }
  if (extent != index.extents.end()) {
    return "has extents out of order";
  }
  return overlap_in_files(manifest, index);
}

}  // namespace fourfold::io
