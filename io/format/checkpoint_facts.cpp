// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "format/checkpoint_contents.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/io/checkpoint_facts.hpp>

namespace fourfold::io {

std::vector<StoredBox> boxes_of(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  const CheckpointContents& contents = checkpoint.contents();
  FOURFOLD_EXPECT(checkpoint.find(tensor.id) == &tensor);
  const std::size_t row = &tensor - contents.index.tensors.data();
  std::vector<StoredBox> boxes;
  for (std::size_t i = contents.first_extent[row]; i < contents.first_extent[row + 1]; ++i) {
    const StoredExtent& extent = contents.index.extents[i];
    boxes.push_back({extent.box, contents.manifest.files[extent.file].name,
                     extent_path(tensor.id, extent.number),
                     static_cast<std::int64_t>(extent.byte_offset),
                     static_cast<std::int64_t>(extent.bytes)});
  }
  return boxes;
}

std::vector<StoredFile> files_of(const Checkpoint& checkpoint) {
  std::vector<StoredFile> files;
  for (const ManifestFile& file : checkpoint.contents().manifest.files) {
    files.push_back({file.name, static_cast<std::int64_t>(file.bytes)});
  }
  return files;
}

std::int64_t payload_bytes(const StoredTensor& tensor) {
  return tensor.shape.elements() * static_cast<std::int64_t>(size_in_bytes(tensor.dtype));
}

std::int64_t payload_bytes(const Checkpoint& checkpoint) {
  std::int64_t bytes = 0;
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    bytes += payload_bytes(tensor);
  }
  return bytes;
}

}  // namespace fourfold::io
