// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/scratch_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace fourfold::io {
namespace {

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + ScratchFile::page_bytes - 1) / ScratchFile::page_bytes * ScratchFile::page_bytes;
}

/// A new file that has lost its name already.
FileDescriptor nameless_file(const std::filesystem::path& directory, int flags) {
  std::string name = (directory / "fourfold-scratch-XXXXXX").string();
  FileDescriptor descriptor(::mkostemp(name.data(), O_CLOEXEC | flags));
  if (descriptor) {
    ::unlink(name.c_str());
  }
  return descriptor;
}

}  // namespace

ScratchFile::ScratchFile(const std::filesystem::path& directory) : directory_(directory) {
  struct stat status = {};
  const bool exists = ::stat(directory.c_str(), &status) == 0;
  if (!exists || !S_ISDIR(status.st_mode)) {
    throw UserError(
        ExitCode::config,
        format_message("{}: {} (state that does not stay in memory is to be kept there); name a "
                       "directory on a disk of this node",
                       directory.string(), exists ? "is not a directory" : std::strerror(errno)));
  }
  descriptor_ = nameless_file(directory, O_DIRECT);
  if (!descriptor_ && errno == EINVAL) {  // not on all file systems
    descriptor_ = nameless_file(directory, 0);
  }
  if (!descriptor_) {
    cannot_write(directory, "mkostemp", errno);
  }
}

ScratchFile::~ScratchFile() {
  for (const Mapping& mapping : mappings_) {
    ::munmap(mapping.begin, mapping.bytes);
  }
}

std::byte* ScratchFile::extend(std::size_t bytes) {
  const std::size_t mapped = std::max(whole_pages(bytes), page_bytes);
  const int failure = ::posix_fallocate(descriptor_.get(), size_bytes_, mapped);
  if (failure != 0) {
    cannot_write(
        directory_ / fmt::format("(scratch space of {})", bytes_text(size_bytes_ + mapped)),
        "posix_fallocate", failure);
  }
  void* const address =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), size_bytes_);
  if (address == MAP_FAILED) {
    throw SystemError(ExitCode::config,
                      format_message("{}: mmap of {} failed ({})", directory_.string(),
                                     bytes_text(mapped), std::strerror(errno)));
  }
  mappings_.push_back({static_cast<std::byte*>(address), mapped, size_bytes_});
  size_bytes_ += mapped;
  return mappings_.back().begin;
}

std::uint64_t ScratchFile::offset_of(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  const auto mapping = std::ranges::find_if(mappings_, [&](const Mapping& each) {
    return each.begin <= byte && byte < each.begin + each.bytes;
  });
  FOURFOLD_EXPECT(mapping != mappings_.end());
  return mapping->offset + (byte - mapping->begin);
}

void ScratchFile::release(const void* begin, std::size_t bytes) const noexcept {
  const auto* const first = static_cast<const std::byte*>(begin);
  for (const Mapping& mapping : mappings_) {
    const auto* const from = std::max<const std::byte*>(first, mapping.begin);
    const auto* const to = std::min<const std::byte*>(first + bytes, mapping.begin + mapping.bytes);
    if (from < to) {
      const std::size_t skipped = (from - mapping.begin) / page_bytes * page_bytes;
      // Takes the pages out of this process. What was written is in the page cache, and goes from
      // there to the file before anybody reads past the cache.
      ::madvise(mapping.begin + skipped, whole_pages(to - mapping.begin - skipped), MADV_DONTNEED);
    }
  }
}

}  // namespace fourfold::io
