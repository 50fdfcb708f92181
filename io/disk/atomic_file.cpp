// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "disk/temporary.hpp"
#include "disk/work_folder.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/temporary_name.hpp>

#include <sys/stat.h>

#include <utility>

namespace fourfold::io {
namespace {

constexpr std::size_t buffer_bytes = 1 << 20;

/// What is no file must not be replaced by one: for root that would be the end of /dev/null.
void require_replaceable(const std::filesystem::path& path) {
  struct stat found {};
  // Through a link too, such as /dev/stdout. A folder is an error of rename().
  if (::stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode)) {
    throw UserError(ExitCode::cannot_write,
                    format_message("{}: cannot be written (it is a device, a pipe or a socket, and "
                                   "a file would take its place); name a file",
                                   path.string()));
  }
}

/// A sibling, or in the folder of the lease that this process has on the directory: what it then
/// renames when it was taken over is not there any more.
std::filesystem::path temporary_of(const std::filesystem::path& path) {
  refuse_fenced_off(path);
  return temporary_sibling(work_folder_in(path.parent_path()) / path.filename());
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  require_replaceable(path_);
  sweep_temporaries_of(path_);
  temporary_ = std::make_unique<Temporary>(temporary_of(path_));
  do {
    file_ = std::make_unique<OutputFile>(OutputFile::create(temporary_->path(), path_));
  } while (!temporary_->lock());
  buffer_.reserve(buffer_bytes);
}

AtomicFile::~AtomicFile() = default;

void AtomicFile::write(std::span<const std::byte> bytes) {
  FOURFOLD_EXPECT(file_ != nullptr);
  if (buffer_.size() + bytes.size() > buffer_bytes) {
    flush();
  }
  if (bytes.size() < buffer_bytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return;
  }
  file_->write_at(written_bytes_, bytes);  // nothing is gained by a copy
  written_bytes_ += bytes.size();
}

void AtomicFile::flush() {
  file_->write_at(written_bytes_, buffer_);
  written_bytes_ += buffer_.size();
  buffer_.clear();
}

void AtomicFile::sync() {
  if (file_ == nullptr) {
    return;
  }
  flush();
  file_->sync();
  file_->close();
  file_.reset();
}

void AtomicFile::publish(const std::function<void()>& ask) {
  sync();
  require_replaceable(path_);  // writing may have taken long
  rename_path(temporary_->path(), path_, ask);
  temporary_->keep();
  sync_folder();
}

void AtomicFile::publish_as_new() {
  sync();
  rename_to_new(temporary_->path(), path_);
  temporary_->keep();
  sync_folder();
}

void AtomicFile::sync_folder() const {
  const std::filesystem::path folder = path_.parent_path();
  sync_directory(folder.empty() ? "." : folder);
}

}  // namespace fourfold::io
