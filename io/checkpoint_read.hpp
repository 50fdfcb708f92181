// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint_contents.hpp"
#include "file.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fourfold::io {

/// A step folder looked at without its payloads.
struct Inspection {
  std::shared_ptr<const CheckpointContents> contents;  ///< null when there is a defect
  std::string manifest_text;
  std::string index_bytes;
  Defect defect;  ///< with the name of the file
};

/// None.
Inspection no_checkpoint(std::string defect);

/// Checks manifest, index, and that exactly the payload files are there, with their sizes. Local.
Inspection inspect(const std::filesystem::path& step_directory);

/// The part of it that needs no file system.
Inspection parse_contents(const std::filesystem::path& step_directory, std::string manifest_text,
                          std::string index_bytes);

/// Runs `look` on rank 0 and gives what it found to all, a defect too. Collective.
/// @throws on all ranks alike what `look` throws, and SystemError (node_fault) naming the rank when
///   one cannot make of the same bytes what rank 0 made of them
Inspection share(const std::function<Inspection()>& look, comm::Communicator& communicator);

/// Reads the extents of a checkpoint's payload files, chunk by checked chunk. Keeps one file open.
class ExtentReader {
 public:
  explicit ExtentReader(const CheckpointContents& contents, DoneWith done_with = {},
                        std::function<void(std::int64_t bytes)> on_read = {});

  /// Copies `part` of `extent` into `target`, which holds `target_box` densely.
  /// @pre part lies in both
  /// @param digest  of all that is read is added; for parts that are whole extents
  Defect copy(const StoredExtent& extent, const Box& part, const Box& target_box, std::byte* target,
              Digest* digest = nullptr);
  /// Copies `box` of a tensor into `target`, which it fills densely, from whatever extents hold it.
  /// @param tensor  index into the checkpoint's tensors
  Defect copy_box(std::size_t tensor, const Box& box, std::byte* target);
  /// Reads all of it: chunk CRCs, digest and, into `crc`, the CRC of its bytes.
  Defect check(const StoredExtent& extent, std::uint32_t& crc);
  /// CRC of bytes that belong to no extent.
  Defect crc_of(std::size_t file, std::uint64_t byte_offset, std::uint64_t bytes,
                std::uint32_t& crc);

  std::int64_t bytes_read() const noexcept { return bytes_read_; }

 private:
  Defect use_file(std::size_t file);
  Defect read_chunk(const StoredExtent& extent, std::uint64_t chunk, std::span<std::byte> bytes,
                    Digest* digest);
  void count(std::int64_t bytes);
  std::string described(const StoredExtent& extent, const std::string& what) const;

  const CheckpointContents& contents_;
  DoneWith done_with_;  ///< with what copy() has filled
  std::function<void(std::int64_t bytes)> on_read_;
  std::size_t open_file_;
  InputFile file_;
  std::vector<std::uint32_t> table_;
  std::vector<std::byte> buffer_;
  std::int64_t bytes_read_ = 0;
};

}  // namespace fourfold::io
