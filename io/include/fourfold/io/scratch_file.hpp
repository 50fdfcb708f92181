// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/unique_handle.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace fourfold::io {

/// Memory of one process that lies in a file rather than in memory: optimizer state that does not
/// fit. The file has no name from its first moment on, so nothing is left of it however the process
/// ends.
///
/// Arrays can be read and written in two ways, one after the other, never at the same time: at
/// their address, through the page cache (release() ends that), and past the cache with TileStream.
class ScratchFile {
 public:
  /// Arrays begin at multiples of it in the file; what TileStream transfers does too.
  static constexpr std::size_t page_bytes = 4096;

  /// @throws UserError: config when `directory` is not one; cannot_write when no file can be made
  ///   in it
  explicit ScratchFile(const std::filesystem::path& directory);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  /// One more array, zero-filled, whose space on the disk is reserved. Its address stays.
  /// @throws UserError (cannot_write) with what is free when the disk is full
  std::byte* extend(std::size_t bytes);

  /// Where a byte of an array is in the file. @pre it is one
  std::uint64_t offset_of(const void* address) const;

  /// Takes a part of the arrays out of this process' memory; it stays where it is in the file.
  /// What lies elsewhere is let be.
  void release(const void* begin, std::size_t bytes) const noexcept;

  const std::filesystem::path& directory() const noexcept { return directory_; }
  int descriptor() const noexcept { return descriptor_.get(); }
  std::uint64_t size_bytes() const noexcept { return size_bytes_; }

 private:
  struct Mapping {
    std::byte* begin;
    std::size_t bytes;
    std::uint64_t offset;
  };
  std::filesystem::path directory_;
  FileDescriptor descriptor_;
  std::uint64_t size_bytes_ = 0;
  std::vector<Mapping> mappings_;
};

}  // namespace fourfold::io
