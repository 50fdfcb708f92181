// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "raw_files.hpp"

#include <fourfold/base/error.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace fourfold::benchmarks {
namespace {

constexpr std::size_t call_bytes = std::size_t{4} << 20;

void require(bool holds, const std::filesystem::path& file) {
  if (!holds) {
    throw SystemError(ExitCode::node_fault,
                      fmt::format("{}: {}", file.string(), std::strerror(errno)));
  }
}

class File {
 public:
  File(std::filesystem::path path, int flags)
      : path_(std::move(path)), descriptor_(::open(path_.c_str(), flags, 0666)) {
    require(descriptor_ >= 0, path_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(descriptor_); }
  int descriptor() const { return descriptor_; }
  void sync() const { require(::fdatasync(descriptor_) == 0, path_); }
  void check(ssize_t done) const { require(done > 0, path_); }

 private:
  std::filesystem::path path_;
  int descriptor_;
};

}  // namespace

void write_raw(const std::filesystem::path& path, std::span<const std::span<const std::byte>> spans,
               bool reserves) {
  const File file(path, O_WRONLY | O_CREAT | O_EXCL);
  off_t total = 0;
  for (const std::span<const std::byte> bytes : spans) {
    total += std::ssize(bytes);
  }
  require(!reserves || ::fallocate(file.descriptor(), 0, 0, total) == 0, path);
  off_t offset = 0;
  for (std::span<const std::byte> bytes : spans) {
    while (!bytes.empty()) {
      const ssize_t done =
          ::pwrite(file.descriptor(), bytes.data(), std::min(bytes.size(), call_bytes), offset);
      file.check(done);
      bytes = bytes.subspan(static_cast<std::size_t>(done));
      offset += done;
    }
  }
  file.sync();
}

void read_raw(std::span<const std::filesystem::path> files, std::uint64_t begin,
              std::span<const std::span<std::byte>> spans) {
  std::size_t span = 0;
  std::size_t position = 0;
  for (const std::filesystem::path& path : files) {
    const std::uint64_t size = std::filesystem::file_size(path);
    if (begin >= size) {
      begin -= size;
      continue;
    }
    const File file(path, O_RDONLY);
    while (span < spans.size() && begin < size) {
      const std::size_t count = std::min<std::size_t>(
          {spans[span].size() - position, call_bytes, static_cast<std::size_t>(size - begin)});
      if (count > 0) {
        const ssize_t done = ::pread(file.descriptor(), spans[span].data() + position, count,
                                     static_cast<off_t>(begin));
        file.check(done);
        position += static_cast<std::size_t>(done);
        begin += static_cast<std::uint64_t>(done);
      }
      if (position == spans[span].size()) {
        ++span;
        position = 0;
      }
    }
    begin = 0;
  }
  require(span == spans.size(), files.back());
}

void drop_pages(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      const File file(entry.path(), O_RDONLY);
      file.sync();
      require(::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED) == 0, entry.path());
    }
  }
}

}  // namespace fourfold::benchmarks
