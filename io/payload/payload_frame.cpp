// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "payload/payload_frame.hpp"

#include "format/checkpoint_contents.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/io/digest.hpp>
#include <fourfold/io/hdf5_version.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fourfold::io {
namespace {

PayloadHead head_of(const SaveJob& job, const PlannedFile& file) {
  PayloadHead head{.step = job.step,
                   .mesh = job.mesh,
                   .files = std::ssize(job.files),
                   .save = job.run_facts,
                   .empty_tensors = {}};
  if (file.name == job.files.front().name) {
    head.scalars = &job.scalars;
    for (const TensorLayout& layout : job.tensors) {
      if (layout.shape.elements() == 0) {
        head.empty_tensors.push_back({layout.id, layout.dtype, layout.shape, {}});
      }
    }
    std::ranges::sort(head.empty_tensors, {}, &StoredTensor::id);  // whatever the caller's order
  }
  return head;
}

}  // namespace

PayloadFrame::PayloadFrame(const SaveJob& job, const PlannedFile& file) {
  std::vector<PayloadDataset> datasets;
  for (const std::size_t extent : file.extents) {
    const TensorLayout& layout = job.layout_of(extent);
    datasets.push_back({extent_path(layout.id, job.numbers[extent]), layout.id.state, layout.dtype,
                        layout.shape, job.plan.extents[extent].box, chunks_, 0});
    bytes_.push_back(job.bytes_of(extent));
    places_.push_back({0, chunks_});
    chunks_ += chunks_of(bytes_.back());
  }
  schema_ = make_payload_schema(head_of(job, file), datasets, chunks_);
  for (std::size_t position = 0; position < places_.size(); ++position) {
    places_[position].byte_offset = datasets[position].byte_offset;
  }
}

std::vector<FileRegion> PayloadFrame::payload_regions() const {
  std::vector<FileRegion> regions;
  for (std::size_t position = 0; position < places_.size(); ++position) {
    regions.push_back({places_[position].byte_offset, bytes_[position], 0});
  }
  regions.push_back({schema_.table_offset, chunks_ * sizeof(std::uint32_t), 0});
  return regions;
}

std::vector<std::byte> PayloadFrame::bytes_in(const FileRegion& gap) const {
  std::vector<std::byte> bytes(gap.bytes);
  schema_.image.read(gap.byte_offset, bytes);
  return bytes;
}

void PayloadFrame::write(OutputFile& file) const {
  const std::uint64_t file_bytes = schema_.image.size_bytes();
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
  if (file.size_bytes() != schema_.image.size_bytes()) {
    return fmt::format("has {} bytes, and what it says of itself makes {}", file.size_bytes(),
                       schema_.image.size_bytes());
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
  FOURFOLD_EXPECT(written.size() == places_.size());
  WrittenPayload payload{.extents = places_,
                         .file_bytes = schema_.image.size_bytes(),
                         .table_offset = schema_.table_offset,
                         .chunks = chunks_};
  std::vector<FileRegion> regions = payload_regions();
  for (std::size_t position = 0; position < places_.size(); ++position) {
    payload.extents[position].digest = written[position].digest;
    payload.table_crc32c = crc32c_combine(payload.table_crc32c, written[position].table_crc32c,
                                          chunks_of(bytes_[position]) * sizeof(std::uint32_t));
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
