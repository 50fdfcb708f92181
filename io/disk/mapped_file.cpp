// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/io/mapped_file.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace fourfold::io {

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const RegularFile file = open_regular_file(path, O_RDONLY, Links::follow);
  if (file.error_number != 0) {
    throw UserError(ExitCode::config,
                    format_message("{}: cannot be opened ({}); check the name and its permissions",
                                   path.string(), std::strerror(file.error_number)));
  }
  if (!file.descriptor) {
    throw UserError(ExitCode::config,
                    format_message("{}: {} and cannot be mapped into memory; name a regular file",
                                   path.string(), file.defect));
  }
  size_bytes_ = file.size_bytes;
  if (size_bytes_ == 0) {
    return;
  }
  void* mapping = ::mmap(nullptr, size_bytes_, PROT_READ, MAP_SHARED, file.descriptor.get(), 0);
  if (mapping == MAP_FAILED) {
    throw UserError(
        ExitCode::config,
        format_message(
            "{}: cannot be mapped into memory ({} bytes: {}); raise the limit of address space "
            "(ulimit -v) or of mappings (vm.max_map_count), or name fewer files",
            path.string(), size_bytes_, std::strerror(errno)));
  }
  data_ = static_cast<std::byte*>(mapping);
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
    ::munmap(data_, size_bytes_);
  }
}

void MappedFile::advise(Access access) const noexcept {
  if (data_ == nullptr) {
    return;
  }
  const int advice = access == Access::sequential ? MADV_SEQUENTIAL
                     : access == Access::random   ? MADV_RANDOM
                                                  : MADV_NORMAL;
  ::madvise(data_, size_bytes_, advice);
}

void MappedFile::will_need(std::size_t offset_bytes, std::size_t count_bytes) const noexcept {
  if (offset_bytes >= size_bytes_) {
    return;
  }
  static const std::size_t page_bytes = ::sysconf(_SC_PAGESIZE);
  const std::size_t begin = offset_bytes / page_bytes * page_bytes;
  const std::size_t end = offset_bytes + std::min(count_bytes, size_bytes_ - offset_bytes);
  ::madvise(data_ + begin, end - begin, MADV_WILLNEED);
}

}  // namespace fourfold::io
