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

}  // namespace fourfold::io
