// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"
#include "payload/extent_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace fourfold::io {

/// What of a long write is on stable storage, so that an attempt that was killed is gone on with.
/// One file per process in the temporary folder: "journal-K", records of 40 bytes, each with its
/// own CRC, so that a torn one at the end is passed over. Local.
class WriteJournal {
 public:
  explicit WriteJournal(const std::filesystem::path& folder, int process);

  /// Notes extents (indices into the plan) whose bytes have been synced. @throws UserError
  /// (cannot_write)
  void note(const std::map<std::size_t, WrittenExtent>& extents);
  void close() { file_.close(); }

 private:
  OutputFile file_;
  std::uint64_t end_ = 0;
};

/// What all journals of a folder say, of a plan of `extents` extents.
std::map<std::size_t, WrittenExtent> read_journals(const std::filesystem::path& folder,
                                                   std::size_t extents);
/// @throws UserError (cannot_write)
void remove_journals(const std::filesystem::path& folder);

}  // namespace fourfold::io
