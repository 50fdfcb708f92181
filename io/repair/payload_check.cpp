// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "checksum/file_region.hpp"
#include "format/checkpoint_contents.hpp"
#include "repair/rebuilt_save.hpp"

#include <fourfold/io/digest.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace fourfold::io {
namespace {

/// Reads one extent, chunk by chunk, and compares it with the file's table.
Defect read_extent(const InputFile& file, std::span<const std::uint32_t> table,
                   const TensorLayout& layout, const StoredExtent& extent, const OnRead& on_read,
                   WrittenExtent& written) {
  std::vector<std::byte> buffer;
  for (std::uint64_t begin = 0; begin < extent.bytes; begin += chunk_bytes) {
    buffer.resize(std::min(chunk_bytes, extent.bytes - begin));
    const std::uint64_t offset = extent.byte_offset + begin;
    if (auto defect = file.read_at(offset, buffer)) {
      return defect;
    }
    std::uint32_t crc = 0;
    for (std::uint64_t hot = 0; hot < buffer.size(); hot += hot_bytes) {
      const auto part =
          std::span(buffer).subspan(hot, std::min<std::uint64_t>(hot_bytes, buffer.size() - hot));
      crc = crc32c(part, crc);
      written.digest += digest_of_bytes(layout.dtype, layout.shape, extent.box, begin + hot, part);
    }
    on_read(std::ssize(buffer));
    if (crc != table[extent.first_chunk + begin / chunk_bytes]) {
      return fmt::format("is damaged in bytes {} to {} of the file (CRC-32C)", offset,
                         offset + buffer.size());
    }
    written.crc32c = crc32c_combine(written.crc32c, crc, buffer.size());
  }
  const auto entries = table.subspan(extent.first_chunk, chunks_of(extent.bytes));
  written.table_crc32c = crc32c(std::as_bytes(entries));
  return std::nullopt;
}

}  // namespace

Defect whole_crc(const InputFile& file, const OnRead& on_read, std::uint32_t& crc) {
  crc = 0;
  std::vector<std::byte> buffer;
  for (std::uint64_t begin = 0; begin < file.size_bytes(); begin += chunk_bytes) {
    buffer.resize(std::min(chunk_bytes, file.size_bytes() - begin));
    if (auto defect = file.read_at(begin, buffer)) {
      return defect;
    }
    crc = crc32c(buffer, crc);
    on_read(std::ssize(buffer));
  }
  return std::nullopt;
}

Defect check_payload(const InputFile& file, const SaveJob& job, const PlannedFile& planned,
                     const OnRead& on_read, WrittenPayload& written) {
  const auto named = [&](const std::string& what) {
    return fmt::format("{} {}", planned.name, what);
  };
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
  std::vector<std::uint32_t> table(frame.chunks());
  if (auto defect =
          file.read_at(frame.table_entry_offset(0), std::as_writable_bytes(std::span(table)))) {
    return named(*defect);
  }
  std::vector<WrittenExtent> extents(planned.extents.size());
  for (std::size_t position = 0; position < extents.size(); ++position) {
    const StoredExtent& extent = frame.extent(position);
    const TensorLayout& layout = job.tensors[extent.tensor];
    if (auto defect = read_extent(file, table, layout, extent, on_read, extents[position])) {
      return fmt::format("{}: tensor {} b{} {}", planned.name, layout.id.str(), extent.number,
                         *defect);
    }
  }
  written = frame.describe(extents);
  return std::nullopt;
}

}  // namespace fourfold::io
