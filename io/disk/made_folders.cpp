// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/at_signal.hpp"
#include "disk/file.hpp"

#include <fourfold/io/made_folders.hpp>

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace fourfold::io {
namespace {

/// The folders that make_directories(folder) would make, the innermost first.
std::vector<std::filesystem::path> missing_folders(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> missing;
  std::error_code ignored;
  for (std::filesystem::path each = folder;
       !each.empty() && !std::filesystem::exists(each, ignored); each = each.parent_path()) {
    missing.push_back(each);
  }
  return missing;
}

}  // namespace

MadeFolders::MadeFolders(const std::filesystem::path& folder) : made_(missing_folders(folder)) {
  try {
    make_directories(folder);
    for (const std::filesystem::path& made : made_) {
      at_signal_.push_back(remove_empty_folder_at_signal(std::filesystem::absolute(made)));
    }
  } catch (...) {
    remove();
    throw;
  }
}

MadeFolders& MadeFolders::operator=(MadeFolders&& other) noexcept {
  std::swap(made_, other.made_);
  std::swap(at_signal_, other.at_signal_);
  return *this;
}

void MadeFolders::remove() noexcept {
  for (const std::filesystem::path& folder : made_) {
    if (::rmdir(folder.c_str()) != 0 && errno != ENOENT) {
      break;  // somebody else has come to it
    }
  }
  keep();
}

void MadeFolders::keep() noexcept {
  made_.clear();
  for (const std::size_t slot : at_signal_) {
    keep_at_signal(slot);
  }
  at_signal_.clear();
}

}  // namespace fourfold::io
