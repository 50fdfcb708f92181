// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/at_signal.hpp"
#include "disk/file.hpp"
#include "disk/temporary.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/made_folders.hpp>
#include <fourfold/io/temporary_name.hpp>

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

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

namespace {

void require_missing(const std::filesystem::path& path) {
  if (kind_of(path) != EntryKind::missing) {
    cannot_write(path, "mkdir", EEXIST);
  }
}

std::filesystem::path folder_above(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

}  // namespace

NewFolder::NewFolder(std::filesystem::path final_path, std::uint64_t bytes)
    : final_path_(std::move(final_path)) {
  if (!final_path_.has_filename()) {  // "out/"
    final_path_ = final_path_.parent_path();
  }
  require_missing(final_path_);
  const std::filesystem::path above = folder_above(final_path_);
  make_directories(above);
  const auto free = free_bytes(above);
  if (free && *free < bytes) {
    throw UserError(ExitCode::cannot_write,
                    format_message("{}: does not fit ({} needed, {} free there); free some space "
                                   "or choose a folder on another file system",
                                   final_path_.string(), bytes_text(bytes), bytes_text(*free)));
  }
  sweep_temporaries_of(final_path_);
  temporary_ = std::make_unique<Temporary>(temporary_sibling(final_path_));
  do {
    remove_tree(temporary_->path());  // of a process of the same number that died
    make_directory(temporary_->path());
  } while (!temporary_->lock());
}

NewFolder::~NewFolder() = default;

const std::filesystem::path& NewFolder::path() const noexcept {
  return temporary_->path();
}

void NewFolder::publish() {
  FOURFOLD_EXPECT(!path().empty());
  sync_directory(path());
  rename_to_new(path(), final_path_);
  temporary_->keep();
  sync_directory(folder_above(final_path_));
}

}  // namespace fourfold::io
