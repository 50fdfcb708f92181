// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/io/atomic_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace fourfold::io {
namespace {

constexpr std::size_t buffer_bytes = 1 << 20;

[[noreturn]] void cannot_write(const std::filesystem::path& path, const char* call) {
  throw UserError(
      ExitCode::cannot_write,
      fmt::format("{}: cannot be written ({}: {}); check that the folder exists, is yours "
                  "to write and has room",
                  path.string(), call, std::strerror(errno)));
}

void sync_folder_of(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  const FileDescriptor folder(
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a folder (EINVAL); the rename itself has happened by then.
  if (!folder || (::fsync(folder.get()) != 0 && errno != EINVAL)) {
    cannot_write(path, "fsync of its folder");
  }
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(fmt::format("{}.tmp-{}", path_.string(), ::getpid())) {
  file_.reset(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file_) {
    cannot_write(path_, "open");
  }
  buffer_.reserve(buffer_bytes);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) {
    file_.reset();
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  FOURFOLD_EXPECT(static_cast<bool>(file_));
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= buffer_bytes) {
    flush();
  }
}

void AtomicFile::flush() {
  std::span<const std::byte> rest(buffer_);
  while (!rest.empty()) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      cannot_write(path_, "write");
    }
    rest = rest.subspan(static_cast<std::size_t>(written));
  }
  buffer_.clear();
}

void AtomicFile::sync() {
  if (!file_) {
    return;
  }
  flush();
  if (::fsync(file_.get()) != 0) {
    cannot_write(path_, "fsync");
  }
  if (::close(file_.release()) != 0) {
    cannot_write(path_, "close");
  }
}

void AtomicFile::publish() {
  sync();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    cannot_write(path_, "rename");
  }
  temporary_.clear();
  sync_folder_of(path_);
}

}  // namespace fourfold::io
