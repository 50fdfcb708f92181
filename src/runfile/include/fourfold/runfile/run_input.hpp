// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fourfold::runfile {

/// A small file that a run file names and that changes what the run computes, as it was when it was
/// read. Token files are none: they stay where they are, and a digest tells whether they have
/// changed.
struct RunInput {
  struct File {
    std::filesystem::path path;  ///< absolute
    std::string bytes;
  };
  std::string key;          ///< that names it: "mesh.schedule"
  std::string value;        ///< as it names it
  std::vector<File> files;  ///< the first is the one that the key takes; the others lie beside it
};

}  // namespace fourfold::runfile
