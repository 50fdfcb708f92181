// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/dtype.hpp>
#include <fourfold/io/digest.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::io {

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

/// Digest of the elements that lie in bytes [begin, begin + bytes.size()) of the dense storage of
/// `box`. @pre begin and the size are multiples of the element's size
Digest digest_of_bytes(DType dtype, const Shape& shape, const Box& box, std::uint64_t begin,
                       std::span<const std::byte> bytes);

}  // namespace fourfold::io
