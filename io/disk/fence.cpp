// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "disk/random_word.hpp"
#include "disk/work_folder.hpp"

#include <fourfold/io/fence.hpp>

#include <cerrno>
#include <cstdio>

namespace fourfold::io {

struct FencedPlace::Impl {
  WorkFolder folder;
};

FencedPlace::FencedPlace(const std::filesystem::path& directory, std::string_view lease_name)
    : impl_(new Impl{WorkFolder(directory, lease_name, random_word())}) {}

FencedPlace::~FencedPlace() = default;

std::error_code remove_fenced(const std::filesystem::path& path) {
  const std::filesystem::path folder = work_folder_in(path.parent_path());
  const std::filesystem::path taken = folder / path.filename();
  // Under its own name: should this process end here, it is what it was.
  if (taken != path && ::rename(path.c_str(), taken.c_str()) != 0) {
    const int error_number = errno;
    return kind_of(path) == EntryKind::missing
               ? std::error_code{}
               : std::error_code(error_number, std::system_category());
  }
  std::error_code failure;
  std::filesystem::remove_all(taken, failure);
  return failure;
}

}  // namespace fourfold::io
