// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "format/checkpoint_contents.hpp"
#include "step/step_folder.hpp"

#include <fourfold/io/checkpoint_find.hpp>

// Apart from checkpoint_find.cpp: programs without HDF5 list steps, and open none.

namespace fourfold::io {

std::vector<std::int64_t> list_steps(const std::filesystem::path& directory) {
  return steps_in(directory);
}

std::vector<std::filesystem::path> step_folders(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> folders;
  for (const std::int64_t step : steps_in(directory)) {
    folders.push_back(directory / step_folder_name(step));
  }
  return folders;
}

}  // namespace fourfold::io
