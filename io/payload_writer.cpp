// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "payload_writer.hpp"

#include "checkpoint_contents.hpp"
#include "file.hpp"
#include "payload_file.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/io/crc32c.hpp>

#include <algorithm>

namespace fourfold::io {
namespace {

std::span<const std::byte> bytes_of(const PayloadExtent& extent) {
  return {extent.data,
          static_cast<std::size_t>(extent.box.elements()) * size_in_bytes(extent.dtype)};
}

/// Writes one extent chunk by chunk, while it is warm in the cache from its checksums.
FileRegion write_extent(OutputFile& file, const PayloadExtent& extent, WrittenExtent& written,
                        std::vector<std::uint32_t>& table, const DoneWith& done_with) {
  const std::span<const std::byte> bytes = bytes_of(extent);
  FileRegion region{written.byte_offset, bytes.size(), 0};
  written.first_chunk = table.size();
  for (std::uint64_t begin = 0; begin < bytes.size(); begin += chunk_bytes) {
    const auto chunk = bytes.subspan(begin, std::min(chunk_bytes, bytes.size() - begin));
    table.push_back(crc32c(chunk));
    region.crc32c = crc32c_combine(region.crc32c, table.back(), chunk.size());
    written.digest += digest_of_bytes(extent.dtype, extent.global_shape, extent.box, begin, chunk);
    file.write_at(written.byte_offset + begin, chunk);
    if (done_with) {
      done_with(chunk.data(), chunk.size());
    }
  }
  return region;
}

/// HDF5's metadata and the padding between datasets.
void add_gaps(const SparseImage& image, std::vector<FileRegion>& regions) {
  std::vector<std::byte> buffer;
  for (FileRegion gap : gaps_between(regions, image.size_bytes())) {
    buffer.resize(gap.bytes);
    image.read(gap.byte_offset, buffer);
    gap.crc32c = crc32c(buffer);
    regions.push_back(gap);
  }
}

}  // namespace

Digest digest_of_bytes(DType dtype, const Shape& shape, const Box& box, std::uint64_t begin,
                       std::span<const std::byte> bytes) {
  const std::size_t element_bytes = size_in_bytes(dtype);
  FOURFOLD_EXPECT(begin % element_bytes == 0 && bytes.size() % element_bytes == 0);
  const Range range{static_cast<std::int64_t>(begin / element_bytes),
                    static_cast<std::int64_t>(bytes.size() / element_bytes)};
  Digest digest;
  const std::byte* data = bytes.data();
  for (Box part : boxes_of_flat_range(box.extent, range)) {
    for (std::size_t dim = 0; dim < box.rank(); ++dim) {
      part.offset[dim] += box.offset[dim];
    }
    const ConstTensorView view(data, dtype, part.extent);
    digest += digest_of_box(shape, part, view);
    data += view.bytes();
  }
  return digest;
}

std::vector<FileRegion> gaps_between(std::vector<FileRegion>& regions, std::uint64_t file_bytes) {
  std::sort(regions.begin(), regions.end(),
            [](const FileRegion& a, const FileRegion& b) { return a.byte_offset < b.byte_offset; });
  std::vector<FileRegion> gaps;
  std::uint64_t position = 0;
  for (const FileRegion& region : regions) {
    FOURFOLD_EXPECT(region.byte_offset >= position);
    if (region.byte_offset > position) {
      gaps.push_back({position, region.byte_offset - position, 0});
    }
    position = region.byte_offset + region.bytes;
  }
  FOURFOLD_EXPECT(position <= file_bytes);
  if (position < file_bytes) {
    gaps.push_back({position, file_bytes - position, 0});
  }
  return gaps;
}

std::uint32_t crc_of_parts(std::vector<FileRegion> parts) {
  std::sort(parts.begin(), parts.end(),
            [](const FileRegion& a, const FileRegion& b) { return a.byte_offset < b.byte_offset; });
  std::uint32_t crc = 0;
  for (const FileRegion& part : parts) {
    crc = crc32c_combine(crc, part.crc32c, part.bytes);
  }
  return crc;
}

WrittenPayload write_payload_file(const std::filesystem::path& path, std::int64_t step,
                                  std::span<const PayloadExtent> extents,
                                  const DoneWith& done_with) {
  WrittenPayload written;
  std::vector<PayloadDataset> datasets;
  for (const PayloadExtent& extent : extents) {
    datasets.push_back({extent_path(extent.id, extent.number), extent.id.state, extent.dtype,
                        extent.global_shape, extent.box, 0});
    written.chunks += chunks_of(bytes_of(extent).size());
  }
  const PayloadSchema schema = make_payload_schema(step, datasets, written.chunks);
  written.file_bytes = schema.image.size_bytes();
  written.table_offset = schema.table_offset;

  OutputFile file = OutputFile::create(path);
  file.set_size(written.file_bytes);
  write_image(file, schema.image);
  std::vector<std::uint32_t> table;
  std::vector<FileRegion> regions;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    written.extents.push_back({datasets[i].byte_offset, 0, {}});
    regions.push_back(write_extent(file, extents[i], written.extents.back(), table, done_with));
  }
  const auto table_bytes = std::as_bytes(std::span(table));
  file.write_at(written.table_offset, table_bytes);
  written.table_crc32c = crc32c(table_bytes);
  regions.push_back({written.table_offset, table_bytes.size(), written.table_crc32c});
  add_gaps(schema.image, regions);
  written.file_crc32c = crc_of_parts(std::move(regions));
  file.sync();
  file.close();
  return written;
}

}  // namespace fourfold::io
