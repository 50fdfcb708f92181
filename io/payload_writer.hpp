// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/dtype.hpp>
#include <fourfold/io/checkpoint_plan.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/io/digest.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace fourfold::io {

/// A part of a tensor to be written and where its bytes are: dense, in host memory, borrowed.
struct PayloadExtent {
  TensorId id;
  std::int64_t number = 0;  ///< the k of b<k>
  DType dtype = DType::f32;
  Shape global_shape;
  Box box;
  const std::byte* data = nullptr;
};

struct WrittenExtent {
  std::uint64_t byte_offset = 0;
  std::uint64_t first_chunk = 0;
  Digest digest;
};

struct WrittenPayload {
  std::vector<WrittenExtent> extents;  ///< as given
  std::uint64_t file_bytes = 0;
  std::uint64_t table_offset = 0;
  std::uint64_t chunks = 0;
  std::uint32_t table_crc32c = 0;
  std::uint32_t file_crc32c = 0;
};

/// Writes one payload file and brings it to stable storage. Checksums and digests are computed from
/// memory while writing, never by reading back. Local.
/// @throws UserError (cannot_write)
WrittenPayload write_payload_file(const std::filesystem::path& path, std::int64_t step,
                                  std::span<const PayloadExtent> extents,
                                  const DoneWith& done_with = {});

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
