// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "payload/payload_frame.hpp"

#include "format/checkpoint_contents.hpp"
#include "format/payload_file.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/io/digest.hpp>
#include <fourfold/io/hdf5_version.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fourfold::io {
namespace {

StoredTensor tensor_of(const TensorLayout& layout) {
  return {layout.id, layout.dtype, layout.shape, {}};
}

/// But for the extents.
PayloadDescription description_of(const SaveJob& job, const PlannedFile& file) {
  PayloadDescription payload{.step = job.step,
                             .mesh = job.mesh,
                             .files = std::ssize(job.files),
                             .save = job.run_facts,
                             .extents = {},
                             .scalars = {},
                             .empty_tensors = {}};
  if (file.name == job.files.front().name) {
    payload.scalars = job.scalars;
    for (const TensorLayout& layout : job.tensors) {
      if (layout.shape.elements() == 0) {
        payload.empty_tensors.push_back(tensor_of(layout));
      }
    }
    std::ranges::sort(payload.empty_tensors, {}, &StoredTensor::id);  // whatever the caller's order
  }
  return payload;
}

}  // namespace

PayloadFrame::PayloadFrame(const SaveJob& job, const PlannedFile& file) {
  PayloadDescription payload = description_of(job, file);
  for (const std::size_t planned : file.extents) {
    StoredExtent& extent = extents_.emplace_back(job.stored(planned));
    extent.first_chunk = table_.chunks;
    payload.extents.push_back(
        {tensor_of(job.tensors[extent.tensor]), extent.number, extent.box, extent.first_chunk});
    table_.chunks += chunks_of(extent.bytes);
  }
  std::vector<std::uint64_t> byte_offsets;
  image_ = make_payload_image(payload, byte_offsets, table_);
  for (std::size_t position = 0; position < extents_.size(); ++position) {
    extents_[position].byte_offset = byte_offsets[position];
  }
}

std::vector<FileRegion> PayloadFrame::payload_regions() const {
  std::vector<FileRegion> regions;
  for (const StoredExtent& extent : extents_) {
    regions.push_back({extent.byte_offset, extent.bytes, 0});
  }
  regions.push_back({table_.byte_offset, table_.chunks * sizeof(std::uint32_t), 0});
  return regions;
}

std::vector<std::byte> PayloadFrame::bytes_in(const FileRegion& gap) const {
  std::vector<std::byte> bytes(gap.bytes);
  image_.read(gap.byte_offset, bytes);
  return bytes;
}

void PayloadFrame::write(OutputFile& file) const {
  const std::uint64_t file_bytes = image_.size_bytes();
  file.set_size(file_bytes);
  std::vector<FileRegion> payload = payload_regions();
  for (const FileRegion& gap : gaps_between(payload, file_bytes)) {
    const std::vector<std::byte> bytes = bytes_in(gap);
    if (std::ranges::any_of(bytes, [](std::byte byte) { return byte != std::byte{0}; })) {
      file.write_at(gap.byte_offset, bytes);  // zeros are there already
    }
  }
}

Defect PayloadFrame::difference(const InputFile& file) const {
  if (file.size_bytes() != image_.size_bytes()) {
    return fmt::format("has {} bytes, and what it says of itself makes {}", file.size_bytes(),
                       image_.size_bytes());
  }
  std::vector<FileRegion> payload = payload_regions();
  for (const FileRegion& gap : gaps_between(payload, file.size_bytes())) {
    std::vector<std::byte> found(gap.bytes);
    if (Defect defect = file.read_at(gap.byte_offset, found)) {
      return defect;
    }
    if (found != bytes_in(gap)) {
      return fmt::format(
          "is damaged in its HDF5 metadata, in bytes {} to {} of the file (or a "
          "version of HDF5 wrote it that writes otherwise than this one: {})",
          gap.byte_offset, gap.byte_offset + gap.bytes, hdf5_version());
    }
  }
  return std::nullopt;
}

WrittenPayload PayloadFrame::describe(std::span<const WrittenExtent> written) const {
  FOURFOLD_EXPECT(written.size() == extents_.size());
  WrittenPayload payload{.extents = extents_, .file_bytes = image_.size_bytes(), .table = table_};
  std::vector<FileRegion> regions = payload_regions();
  for (std::size_t position = 0; position < extents_.size(); ++position) {
    payload.extents[position].digest = written[position].digest;
    payload.table_crc32c =
        crc32c_combine(payload.table_crc32c, written[position].table_crc32c,
                       chunks_of(extents_[position].bytes) * sizeof(std::uint32_t));
    regions[position].crc32c = written[position].crc32c;
  }
  regions.back().crc32c = payload.table_crc32c;
  for (FileRegion gap : gaps_between(regions, payload.file_bytes)) {
    gap.crc32c = crc32c(bytes_in(gap));
    regions.push_back(gap);
  }
  payload.file_crc32c = crc_of_parts(std::move(regions));
  return payload;
}

}  // namespace fourfold::io
