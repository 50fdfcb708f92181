// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/unique_handle.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace fourfold::io {

/// The lines of a text file of any size, one after the other, in the memory of a megabyte and the
/// longest line. It reads what the file had when it was opened, whatever is appended meanwhile, and
/// never follows a link. Local; one thread per object.
class LineReader {
 public:
  /// What may be read after each line, for parsers that read whole vectors.
  static constexpr std::size_t padding_bytes = 64;

  /// @param longest_line_bytes  longer lines are passed over
  /// @throws UserError (config) when it cannot be opened or is no regular file
  explicit LineReader(const std::filesystem::path& path,
                      std::size_t longest_line_bytes = std::size_t{16} << 20);

  /// @param line  becomes the next one, without its end; good until the next call. The last one
  ///              needs no end
  /// @return whether there was one
  /// @throws UserError (data_corrupt) when the file cannot be read
  bool next(std::string_view& line);
  /// The first line is the next one.
  void rewind() noexcept;
  /// Lines that were too long, since the last rewind.
  std::int64_t passed_over() const noexcept { return passed_over_; }

 private:
  void fill();

  std::filesystem::path path_;
  std::size_t longest_line_bytes_;
  FileDescriptor file_;
  std::uint64_t size_bytes_ = 0;
  std::uint64_t offset_ = 0;  ///< in the file, of what is read next
  std::vector<char> buffer_;
  std::size_t begin_ = 0;    ///< of the next line
  std::size_t scanned_ = 0;  ///< up to here it has no end
  std::size_t end_ = 0;      ///< of what is in the buffer
  bool passing_over_ = false;
  std::int64_t passed_over_ = 0;
};

}  // namespace fourfold::io
