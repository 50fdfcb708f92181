// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <set>
#include <string>

namespace fourfold::io {

/// The files of a folder that a process writes into here and there: more than may be open at once.
/// Local.
class OpenFiles {
 public:
  OpenFiles(std::filesystem::path folder, std::size_t most_open)
      : folder_(std::move(folder)), most_open_(most_open) {}

  /// Opens it, or makes it; until the next call. @throws UserError (cannot_write)
  OutputFile& use(const std::string& name);

  /// Brings to stable storage all that was written since the last time. Its pages leave the page
  /// cache: they serve the next bytes, and what else the machine has cached stays.
  void sync();

  /// Closes all, each looked at; what was written is synced before.
  void close();

 private:
  struct Open {
    OutputFile file;
    std::list<std::string>::iterator place;  ///< in recent_
    bool is_dirty = true;
  };
  void close_oldest();

  std::filesystem::path folder_;
  std::size_t most_open_;
  std::map<std::string, Open> open_;
  std::list<std::string> recent_;  ///< the one used last in front
};

}  // namespace fourfold::io
