// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/directory_lease.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace fourfold::io {

/// What a lease file says.
struct Lease {
  std::string word;  ///< tells apart any two that were ever taken
  LeaseHolder holder;
  long count = 0;
  std::string unreadable = {};  ///< why; a lease that makes no sense is readable
  bool is_foreign = false;      ///< somebody's file that is called so

  /// Its line: "fourfold-lease 1 WORD HOST PROCESSES PID JOB RESTARTS COUNT CHAIN".
  std::string text() const;
};

/// Nothing when there is none. One that cannot be read or understood is somebody's whom nobody
/// knows.
std::optional<Lease> read_lease(const std::filesystem::path& path);

enum class Linked : std::uint8_t { yes, no, cannot };

/// Makes `path` a second name of a file of ours, or not: what link() answers may get lost on NFS,
/// but not how many names the file has.
/// @throws UserError (cannot_write)
Linked link_lease(const std::filesystem::path& file, const std::filesystem::path& path);

/// Takes away a lease that was left behind, and no other: who else has judged so may have taken
/// its own by now.
/// @return where it lies now, for who wants to put it back; empty: somebody else was faster
/// @throws UserError (cannot_write) where only its owner may
std::filesystem::path set_lease_aside(const std::filesystem::path& path, const Lease& stale);

/// For who has taken a directory over: an earlier holder that stood still may have this file open,
/// and what it still appends is to come to nobody's eyes. The file is replaced by one with the same
/// bytes. Nothing happens where there is none, or what is there is no regular file.
/// @throws UserError (cannot_write)
void leave_to_earlier_holder(const std::filesystem::path& file);

}  // namespace fourfold::io
