// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "payload/payload_writer.hpp"

#include "format/checkpoint_contents.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/io/crc32c.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::io {

ExtentWriter::ExtentWriter(DType dtype, const Shape& shape, const Box& box,
                           std::uint64_t byte_offset)
    : dtype_(dtype),
      shape_(shape),
      box_(box),
      byte_offset_(byte_offset),
      bytes_(static_cast<std::uint64_t>(box.elements()) * size_in_bytes(dtype)) {
  table_.reserve(chunks_of(bytes_));
}

void ExtentWriter::append(OutputFile& file, std::span<const std::byte> bytes) {
  FOURFOLD_EXPECT(bytes.size() <= bytes_ - position_);
  while (!bytes.empty()) {
    const std::uint64_t chunk_begin = position_ / chunk_bytes * chunk_bytes;
    const std::uint64_t chunk_end = std::min(chunk_begin + chunk_bytes, bytes_);
    const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), chunk_end - position_));
    for (std::uint64_t begin = 0; begin < part.size(); begin += hot_bytes) {
      const auto hot = part.subspan(begin, std::min<std::uint64_t>(hot_bytes, part.size() - begin));
      chunk_crc_ = crc32c(hot, chunk_crc_);
      written_.digest += digest_of_bytes(dtype_, shape_, box_, position_ + begin, hot);
    }
    file.write_at(byte_offset_ + position_, part);
    position_ += part.size();
    bytes = bytes.subspan(part.size());
    if (position_ == chunk_end) {
      written_.crc32c = crc32c_combine(written_.crc32c, chunk_crc_, chunk_end - chunk_begin);
      table_.push_back(std::exchange(chunk_crc_, 0));
    }
  }
}

WrittenExtent ExtentWriter::result() const {
  FOURFOLD_EXPECT(is_complete());
  WrittenExtent result = written_;
  result.table_crc32c = crc32c(std::as_bytes(std::span(table_)));
  return result;
}

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

}  // namespace fourfold::io
