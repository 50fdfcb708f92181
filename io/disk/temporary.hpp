// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/file_descriptor.hpp>

#include <cstddef>
#include <filesystem>

namespace fourfold::io {

/// A file or folder, with all below, that is not whole yet, or is for a moment only: it is removed
/// when the object ends, and when a signal ends the process (base/end_by_signal.hpp). One that is
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

}  // namespace fourfold::io
