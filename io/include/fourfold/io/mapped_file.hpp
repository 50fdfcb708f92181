// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace fourfold::io {

/// A whole file mapped for reading. Owns the mapping; move-only. Pages are loaded when they are
/// touched and are shared between the ranks of a node.
///
/// The size is taken once, at open. A file that another program makes shorter afterwards kills the
/// process with SIGBUS on the next touch of a lost page: that is how mapped files behave, so files
/// in use must be replaced by rename (as everything here writes them), never rewritten in place.
class MappedFile {
 public:
  /// How the pages will be touched; a hint to the kernel's read-ahead, never a matter of
  /// correctness.
  enum class Access { normal, sequential, random };

  MappedFile() noexcept = default;
  /// @throws UserError (config) if `path` does not exist or cannot be read; SystemError if mapping
  /// fails. An empty file gives an empty span.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const noexcept { return {data_, size_bytes_}; }
  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(data_), size_bytes_};
  }
  const std::filesystem::path& path() const noexcept { return path_; }

  void advise(Access access) const noexcept;
  /// Asks the kernel to read this part ahead, without waiting. Parts outside the file are cut off.
  void will_need(std::size_t offset_bytes, std::size_t count_bytes) const noexcept;

 private:
  std::filesystem::path path_;
  std::byte* data_ = nullptr;  ///< never written through
  std::size_t size_bytes_ = 0;
};

/// The whole of a small file of another program. Links are followed.
/// @throws UserError: config when there is no such file, or it is no regular file;
///   data_corrupt when it cannot be read or has more than `limit` bytes
std::string text_of_file(const std::filesystem::path& path, std::uint64_t limit);

}  // namespace fourfold::io
