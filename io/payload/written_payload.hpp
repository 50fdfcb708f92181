// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/digest.hpp>

#include <cstdint>
#include <vector>

namespace fourfold::io {

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

}  // namespace fourfold::io
