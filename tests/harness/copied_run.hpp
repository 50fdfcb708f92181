// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scratch_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace fourfold::harness {

/// Copies what a run has on its disks, such that the copy stands for the run at another time: a
/// ".fast-level" names the folder that it now lies in.
inline void copy_run(const std::filesystem::path& from, const std::filesystem::path& to) {
  namespace fs = std::filesystem;
  fs::create_directories(to);
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  const auto take_over = [](const fs::path& file) {
    struct statx status {};
    if (::statx(AT_FDCWD, file.parent_path().c_str(), 0, STATX_INO | STATX_BTIME, &status) != 0) {
      throw std::runtime_error("cannot look at " + file.parent_path().string());
    }
    const bool has_birth = (status.stx_mask & STATX_BTIME) != 0;
    const std::string nanoseconds = std::to_string(has_birth ? status.stx_btime.tv_nsec : 0);
    const std::string text = read_bytes(file);
    write_bytes(file, text.substr(0, text.find(' ', text.find(' ', text.find(' ') + 1) + 1)) + " " +
                          std::to_string(status.stx_ino) + " " +
                          std::to_string(has_birth ? status.stx_btime.tv_sec : 0) + "." +
                          std::string(9 - nanoseconds.size(), '0') + nanoseconds + "\n");
  };
  for (const auto& entry : fs::recursive_directory_iterator(to)) {
    if (entry.path().filename() == ".fast-level") {
      take_over(entry.path());
    }
  }
}

}  // namespace fourfold::harness
