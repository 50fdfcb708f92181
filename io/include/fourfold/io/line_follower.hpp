// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fourfold::io {

/// Reads what another process appends to a text file of whole lines, again and again, each time
/// only what is new. The file may be missing, cut off, replaced, rubbish, or no file at all: it
/// never waits, never follows a link and never throws for what it finds. Local; one thread per
/// object.
class LineFollower {
 public:
  /// @param most_bytes  that one look reads: of more, the last ones count
  /// @param longest_line_bytes  longer lines are passed over
  explicit LineFollower(std::filesystem::path path, std::uint64_t most_bytes = 1ULL << 30,
                        std::uint64_t longest_line_bytes = 16ULL << 20)
      : path_(std::move(path)), most_bytes_(most_bytes), longest_line_bytes_(longest_line_bytes) {}

  /// @param forget   called first when the file is not the one of the last look, or shorter: what
  ///                 its lines said does not count any more, and all of the new one come
  /// @param on_line  gets every whole line once, without its end
  void read_new(const std::function<void()>& forget,
                const std::function<void(std::string_view)>& on_line);

 private:
  void start_again(const std::function<void()>& forget);
  void pass_on(std::string_view text, const std::function<void(std::string_view)>& on_line);

  std::filesystem::path path_;
  std::uint64_t most_bytes_;
  std::uint64_t longest_line_bytes_;
  std::uint64_t file_number_ = 0;  ///< of the file that was read; 0: none yet
  std::uint64_t position_ = 0;
  std::string cut_off_;        ///< the begin of a line whose end is not there yet
  bool passing_over_ = false;  ///< what comes up to the next line end is no whole line
};

/// The whole of a regular file of at most `most_bytes` bytes; nothing when there is no such file,
/// or it is a link, larger or cannot be read. For looking at what may be there and others may be
/// writing.
std::optional<std::string> text_if_readable(const std::filesystem::path& path,
                                            std::uint64_t most_bytes);

}  // namespace fourfold::io
