// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/regular_file.hpp>
#include <fourfold/base/unique_handle.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace fourfold::io {

/// A text file that grows by whole lines, flushed at once: a log that others follow and that a
/// crash may cut. A last line that was cut off is ended first, so that what comes after is whole.
/// Local; one process at a time writes. Who has taken the directory over from another (a lease that
/// was left behind, directory_lease.hpp) goes on in a new file with the same lines, so that what
/// the other may still append comes nowhere.
class LineFile {
 public:
  /// @param advice  what to do when it cannot be written: "choose another log.dir"
  LineFile(std::filesystem::path path, std::string advice)
      : path_(std::move(path)), advice_(std::move(advice)) {}

  /// @param line  without its end. Makes the file if it is missing; what is no regular file is not
  /// written to, nor is what a link leads to. @throws UserError: cannot_write; no_progress where
  ///   another start has taken the directory over
  void append(const std::string& line);
  /// Brings all lines to stable storage. @throws UserError (cannot_write)
  void sync();

 private:
  void open();
  RegularFile opened() const;
  void write(const std::string& text);
  [[noreturn]] void fail(std::string_view call, int error_number) const;

  std::filesystem::path path_;
  std::string advice_;
  FileDescriptor file_;
};

}  // namespace fourfold::io
