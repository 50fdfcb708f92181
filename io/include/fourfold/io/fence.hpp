// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a process changes in a directory with a lease (directory_lease.hpp) beside AtomicFile and
/// checkpoints: it, too, fails from the moment on in which another start takes the directory over,
/// however long the process stood still before. docs/adr/0022-fenced-leases.md
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

namespace fourfold::io {

class WorkFolder;

/// For a process that has not the lease itself: another process of its start has it, or nobody
/// yet. As long as this lives, what AtomicFile publishes in the directory is renamed out of a
/// folder that whoever takes the lease takes away first. So:
///
///   const FencedPlace place(directory, lease_name);
///   if (nobody_else_has_the_lease()) { write; }
///
/// In this order: who takes it after the look finds the folder. Local; not movable.
class FencedPlace {
 public:
  /// @pre `directory` is there
  /// @throws UserError (cannot_write)
  FencedPlace(const std::filesystem::path& directory, std::string_view lease_name);
  ~FencedPlace();
  FencedPlace(const FencedPlace&) = delete;
  FencedPlace& operator=(const FencedPlace&) = delete;

 private:
  std::unique_ptr<WorkFolder> folder_;
};

/// Removes a regular file, and nothing else. In a directory of which this process has the lease it
/// is renamed into the folder of that first, which fails where another has taken over. Local; does
/// not throw.
/// @return why it is still there; nothing also when it never was
std::error_code remove_fenced(const std::filesystem::path& path);
/// The same with a folder, and all below: only of one that fourfold itself has made.
std::error_code remove_folder_fenced(const std::filesystem::path& path);

}  // namespace fourfold::io
