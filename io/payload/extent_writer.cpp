// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "payload/extent_writer.hpp"

#include "checksum/file_region.hpp"
#include "format/checkpoint_contents.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/io/digest.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::io {

ExtentWriter::ExtentWriter(DType dtype, const Shape& shape, const Box& box,
                           std::uint64_t byte_offset)
    : dtype_(dtype),
      shape_(shape),
      box_(box),
      byte_offset_(byte_offset),
      bytes_(box.elements() * size_in_bytes(dtype)) {
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

}  // namespace fourfold::io
