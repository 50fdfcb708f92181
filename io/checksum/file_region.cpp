// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "checksum/file_region.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/io/digest.hpp>

#include <algorithm>

namespace fourfold::io {

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
