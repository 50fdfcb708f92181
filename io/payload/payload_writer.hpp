// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"

#include <fourfold/base/box.hpp>
#include <fourfold/base/dtype.hpp>
#include <fourfold/io/digest.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::io {

/// What writing one extent found out.
struct WrittenExtent {
  Digest digest;
  std::uint32_t crc32c = 0;        ///< of all its bytes
  std::uint32_t table_crc32c = 0;  ///< of its entries of /_crc32c
};

/// Where an extent lies in its payload file.
struct PlacedExtent {
  std::uint64_t byte_offset = 0;
  std::uint64_t first_chunk = 0;  ///< entry of /_crc32c
  Digest digest = {};
};

/// A payload file that has been written whole.
struct WrittenPayload {
  std::vector<PlacedExtent> extents;  ///< in their order in the file
  std::uint64_t file_bytes = 0;
  std::uint64_t table_offset = 0;
  std::uint64_t chunks = 0;
  std::uint32_t table_crc32c = 0;
  std::uint32_t file_crc32c = 0;
};

/// Writes one extent front to back, in parts of any size. Checksums and digest are computed from
/// memory while writing, while it is warm in the cache, never by reading back. Local.
class ExtentWriter {
 public:
  /// @param box  of a tensor of this dtype and shape; lies densely from `byte_offset` of the file
  ExtentWriter(DType dtype, const Shape& shape, const Box& box, std::uint64_t byte_offset);

  /// Writes what comes next. @pre whole elements, no more than are missing
  /// @throws UserError (cannot_write)
  void append(OutputFile& file, std::span<const std::byte> bytes);
  bool is_complete() const noexcept { return position_ == bytes_; }

  /// Once it is complete: the CRCs of its chunks, as they belong into /_crc32c.
  std::span<const std::uint32_t> table() const noexcept { return table_; }
  WrittenExtent result() const;

 private:
  DType dtype_;
  Shape shape_;
  Box box_;
  std::uint64_t byte_offset_;
  std::uint64_t bytes_;
  std::uint64_t position_ = 0;
  std::uint32_t chunk_crc_ = 0;
  std::vector<std::uint32_t> table_;
  WrittenExtent written_;
};

/// Digest of the elements that lie in bytes [begin, begin + bytes.size()) of the dense storage of
/// `box`. @pre begin and the size are multiples of the element's size
Digest digest_of_bytes(DType dtype, const Shape& shape, const Box& box, std::uint64_t begin,
                       std::span<const std::byte> bytes);

/// A part of a file whose CRC-32C is known.
struct FileRegion {
  std::uint64_t byte_offset = 0;
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
};

/// The parts of a file of `file_bytes` between `regions` (which it sorts), in order.
/// @pre the regions lie in the file and do not overlap
std::vector<FileRegion> gaps_between(std::vector<FileRegion>& regions, std::uint64_t file_bytes);

/// CRC of a file from those of its parts, which tile it.
std::uint32_t crc_of_parts(std::vector<FileRegion> parts);

}  // namespace fourfold::io
