// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"
#include "format/checkpoint_contents.hpp"

#include <fourfold/base/box.hpp>
#include <fourfold/io/checkpoint.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace fourfold::io {

/// Told of bytes that have been read.
using OnRead = std::function<void(std::int64_t bytes)>;

/// CRC-32C of a part of a file. @return what is wrong
Defect crc_of_part(const InputFile& file, std::uint64_t byte_offset, std::uint64_t bytes,
                   const OnRead& on_read, std::uint32_t& crc);

/// Reads the extents of a checkpoint's payload files, chunk by checked chunk. Keeps one file open.
class ExtentReader {
 public:
  explicit ExtentReader(const CheckpointContents& contents, DoneWith done_with = {},
                        OnRead on_read = {});

  /// Copies `part` of `extent` into `target`, which holds `target_box` densely. Reads the chunks
  /// that it touches, each whole, since a CRC covers a whole one.
  /// @pre part lies in both
  /// @return what is damaged; target holds anything then
  Defect copy(const StoredExtent& extent, const Box& part, const Box& target_box,
              std::byte* target);
  /// Copies `box` of a tensor into `target`, which it fills densely, from whatever extents hold it.
  /// @param tensor  index into the checkpoint's tensors
  Defect copy_box(std::size_t tensor, const Box& box, std::byte* target);
  /// Reads all of it, and checks chunk CRCs. @param digest, crc  out: of its bytes
  Defect sum(const StoredExtent& extent, Digest& digest, std::uint32_t& crc);
  /// The same, and whether it has the digest of the index.
  Defect check(const StoredExtent& extent, std::uint32_t& crc);
  /// CRC of bytes that belong to no extent.
  Defect crc_of(std::size_t file, std::uint64_t byte_offset, std::uint64_t bytes,
                std::uint32_t& crc);

  std::int64_t bytes_read() const noexcept { return bytes_read_; }

 private:
  Defect use_file(std::size_t file);
  void open_chunk(const StoredExtent& extent, std::uint64_t byte);
  /// The next bytes of the open chunk, as many as `bytes` holds; their CRC while they are in the
  /// core's cache.
  Defect read_next(const StoredExtent& extent, std::span<std::byte> bytes);
  /// The rest of it, for the CRC alone, and whether that holds.
  Defect close_chunk(const StoredExtent& extent);
  /// The next piece, into piece_; as short as the chunk's end makes it.
  Defect read_piece(const StoredExtent& extent);
  void count(std::int64_t bytes);
  std::string described(const StoredExtent& extent, const std::string& what) const;

  const CheckpointContents& contents_;
  DoneWith done_with_;  ///< with what copy() has filled
  OnRead on_read_;
  std::size_t open_file_;
  InputFile file_;
  std::vector<std::uint32_t> table_;
  // The chunk that is being read from its begin to its end; offsets are within the extent.
  std::uint64_t next_byte_ = 0;
  std::uint64_t chunk_end_ = 0;
  std::uint32_t chunk_crc_ = 0;
  std::vector<std::byte> memory_;
  std::span<const std::byte> piece_;  ///< of memory_
  std::int64_t bytes_read_ = 0;
};

}  // namespace fourfold::io
