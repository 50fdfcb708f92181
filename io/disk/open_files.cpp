// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/open_files.hpp"

#include <utility>

namespace fourfold::io {

OutputFile& OpenFiles::use(const std::string& name) {
  auto found = open_.find(name);
  if (found == open_.end()) {
    if (open_.size() == most_open_) {
      close_oldest();
    }
    OutputFile file = OutputFile::open_or_create(folder_ / name);
    recent_.push_front(name);
    found = open_.emplace(name, Open{std::move(file), recent_.begin()}).first;
  }
  recent_.splice(recent_.begin(), recent_, found->second.place);
  found->second.is_dirty = true;
  return found->second.file;
}

/// Synced first: whoever opens it again may not be told of what could not be written.
void OpenFiles::close_oldest() {
  const auto oldest = open_.find(recent_.back());
  if (oldest->second.is_dirty) {
    oldest->second.file.sync();
    oldest->second.file.forget_pages();
  }
  oldest->second.file.close();
  open_.erase(oldest);
  recent_.pop_back();
}

void OpenFiles::close() {
  while (!open_.empty()) {
    close_oldest();
  }
}

void OpenFiles::sync() {
  for (auto& [name, open] : open_) {
    if (open.is_dirty) {
      open.file.sync();
      open.file.forget_pages();
      open.is_dirty = false;
    }
  }
}

}  // namespace fourfold::io
