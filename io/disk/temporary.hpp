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
  std::size_t slot_;  ///< where a signal handler finds it; or too large a number
};

/// Removes what killed processes have left of `path` (temporary_name.hpp); what is locked, or
/// cannot be, stays. The folder is looked through once per process and path.
void sweep_temporaries_of(const std::filesystem::path& path);

/// A signal that ends the process removes this folder if it is empty, until the number that is
/// returned is given to keep_at_signal().
std::size_t remove_empty_folder_at_signal(const std::filesystem::path& folder);
/// The same of a lease that is still this process's, and of all that is in its work folder.
/// @pre the folder's path is the lease's and more, and ends with "-" and the lease's word
std::size_t give_lease_back_at_signal(const std::filesystem::path& work_folder,
                                      const std::filesystem::path& lease);
void keep_at_signal(std::size_t slot) noexcept;

/// Removes the temporaries of this process, and what it made for them if that is empty then.
/// Async-signal-safe.
void remove_temporaries() noexcept;

}  // namespace fourfold::io
