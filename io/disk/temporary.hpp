// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/unique_handle.hpp>

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>

namespace fourfold::io {

/// A file or folder, with all below, that is not whole yet, or is for a moment only: it is removed
/// when the object ends, and when a signal ends the process (base/fatal_exit.hpp). One that is
/// locked is known to others as that of a living process; what a killed one has left is not.
class Temporary {
 public:
  /// Nothing has to be there yet.
  explicit Temporary(std::filesystem::path path);
  ~Temporary();
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

  /// Locks what is there by now. Where the file system knows no locks nothing is locked, and
  /// nothing swept either.
  /// @return false when somebody has swept it since it was made: make it again
  bool lock();
  /// It has its name by now, and stays.
  void keep() noexcept;

 private:
  std::filesystem::path path_;
  FileDescriptor lock_;
  std::size_t slot_;  ///< what a signal finds it by
};

/// Removes what killed processes have left of `path` (temporary_name.hpp); what is locked, or
/// cannot be, stays. The folder is looked through once per process and path.
void sweep_temporaries_of(const std::filesystem::path& path);

/// 16 hexadecimal digits that nobody else draws: the name of what several jobs may make in a
/// folder.
inline std::string random_word() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

/// Whether random_word() may have given it. What is swept by its name has such a word in it: no
/// name that a person would give.
inline bool is_random_word(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Whether `name` is `prefix` and such a word.
inline bool is_random_word_after(std::string_view prefix, std::string_view name) {
  return name.starts_with(prefix) && is_random_word(name.substr(prefix.size()));
}

}  // namespace fourfold::io
