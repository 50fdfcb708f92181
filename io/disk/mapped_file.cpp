// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/io/file_descriptor.hpp>
#include <fourfold/io/mapped_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace fourfold::io {

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    throw UserError(ExitCode::config,
                    fmt::format("{}: cannot be opened ({}); check the name and its "
                                "permissions",
                                path.string(), std::strerror(errno)));
  }
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) {
    throw SystemError(ExitCode::config,
                      fmt::format("{}: fstat failed ({})", path.string(), std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    throw UserError(
        ExitCode::config,
        fmt::format("{}: is not a regular file (it has to be mapped into memory); name a "
                    "file",
                    path.string()));
  }
  size_bytes_ = static_cast<std::size_t>(status.st_size);
  if (size_bytes_ == 0) {
    return;
  }
  void* mapping = ::mmap(nullptr, size_bytes_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapping == MAP_FAILED) {
    throw SystemError(ExitCode::config,
                      fmt::format("{}: mmap of {} bytes failed ({})", path.string(), size_bytes_,
                                  std::strerror(errno)));
  }
  data_ = static_cast<const std::byte*>(mapping);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(const_cast<std::byte*>(data_), size_bytes_);
  }
}

void MappedFile::advise(Access access) const noexcept {
  if (data_ == nullptr) {
    return;
  }
  const int advice = access == Access::sequential ? MADV_SEQUENTIAL
                     : access == Access::random   ? MADV_RANDOM
                                                  : MADV_NORMAL;
  ::madvise(const_cast<std::byte*>(data_), size_bytes_, advice);
}

void MappedFile::will_need(std::size_t offset_bytes, std::size_t count_bytes) const noexcept {
  if (offset_bytes >= size_bytes_) {
    return;
  }
  static const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = offset_bytes / page_bytes * page_bytes;
  const std::size_t end = offset_bytes + std::min(count_bytes, size_bytes_ - offset_bytes);
  ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_WILLNEED);
}

}  // namespace fourfold::io
