// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "payload/payload_frame.hpp"
#include "repair/rebuilt_save.hpp"

#include <fourfold/io/digest.hpp>

#include <fmt/format.h>

#include <vector>

namespace fourfold::io {
namespace {

/// What a reader of extents has to know of one file of a job.
CheckpointContents contents_of_file(const std::filesystem::path& folder, const SaveJob& job,
                                    const CrcTable& table, StoredFile file) {
  CheckpointContents contents;
  contents.path = folder;
  contents.manifest.files = {std::move(file)};
  contents.index.tables = {table};
  for (const TensorLayout& layout : job.tensors) {
    contents.index.tensors.push_back({layout.id, layout.dtype, layout.shape, {}});
  }
  return contents;
}

}  // namespace

Defect check_payload(const std::filesystem::path& folder, const SaveJob& job,
                     const PlannedFile& planned, const OnRead& on_read, WrittenPayload& written) {
  const auto named = [&](const std::string& what) {
    return fmt::format("{} {}", planned.name, what);
  };
  InputFile file;
  if (const Defect defect = file.open(folder / planned.name)) {
    return named(*defect);
  }
  std::uint64_t rest = file.size_bytes();
  for (const std::size_t extent : planned.extents) {
    if (job.bytes_of(extent) > rest) {
      return named("says that it holds more bytes than it has");
    }
    rest -= job.bytes_of(extent);
  }
  const PayloadFrame frame(job, planned);
  if (auto defect = frame.difference(file)) {
    return named(*defect);
  }
  std::vector<std::uint32_t> table(frame.table().chunks);
  const auto table_bytes = std::as_writable_bytes(std::span(table));
  if (auto defect = file.read_at(frame.table().byte_offset, table_bytes)) {
    return named(*defect);
  }
  const CheckpointContents contents = contents_of_file(
      folder, job, frame.table(), {planned.name, file.size_bytes(), 0, crc32c(table_bytes)});
  ExtentReader reader(contents, {}, on_read);
  std::vector<WrittenExtent> extents(planned.extents.size());
  for (std::size_t position = 0; position < extents.size(); ++position) {
    const StoredExtent& extent = frame.extent(position);
    WrittenExtent& sums = extents[position];
    if (auto defect = reader.sum(extent, sums.digest, sums.crc32c)) {
      return defect;
    }
    sums.table_crc32c = crc32c(
        std::as_bytes(std::span(table).subspan(extent.first_chunk, chunks_of(extent.bytes))));
  }
  written = frame.describe(extents);
  return std::nullopt;
}

}  // namespace fourfold::io
