// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "disk/temporary.hpp"
#include "disk/work_folder.hpp"

#include <fourfold/io/fence.hpp>

#include <cerrno>
#include <cstdio>

namespace fourfold::io {

FencedPlace::FencedPlace(const std::filesystem::path& directory, std::string_view lease_name)
    : folder_(std::make_unique<WorkFolder>(directory, lease_name, random_word())) {}

FencedPlace::~FencedPlace() = default;

namespace {

/// @param remove  what it is called then
template <class Remove>
std::error_code take_and_remove(const std::filesystem::path& path, Remove remove) {
  const std::filesystem::path folder = work_folder_in(path.parent_path());
  const std::filesystem::path taken = folder / path.filename();
  // Under its own name: should this process end here, it is what it was.
  if (taken != path && ::rename(path.c_str(), taken.c_str()) != 0) {
    const int error_number = errno;
    return kind_of(path) == EntryKind::missing
               ? std::error_code{}
               : std::error_code(error_number, std::system_category());
  }
  return remove(taken);
}

}  // namespace

std::error_code remove_fenced(const std::filesystem::path& path) {
  if (const EntryKind kind = kind_of(path); kind != EntryKind::file) {
    return kind == EntryKind::missing ? std::error_code{}
                                      : std::make_error_code(std::errc::invalid_argument);
  }
  return take_and_remove(path, [](const std::filesystem::path& taken) {
    std::error_code failure;
    std::filesystem::remove(taken, failure);
    return failure;
  });
}

std::error_code remove_folder_fenced(const std::filesystem::path& path) {
  return take_and_remove(path, [](const std::filesystem::path& taken) {
    std::error_code failure;
    std::filesystem::remove_all(taken, failure);
    return failure;
  });
}

}  // namespace fourfold::io
