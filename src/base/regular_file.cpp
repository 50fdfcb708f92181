// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/regular_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace fourfold {
namespace {

std::string_view kind_of(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
         : S_ISLNK(mode)  ? "a symbolic link, which is not followed here"
                          : "a device";
}

RegularFile refused(mode_t mode) {
  return {.descriptor = {},
          .size_bytes = 0,
          .defect = fmt::format("is not a regular file (it is {})", kind_of(mode)),
          .error_number = 0};
}

/// Why open(2) has failed. What the entry is, is looked at for the message alone.
RegularFile not_opened(const std::filesystem::path& path, Links links, int error_number) {
  struct stat status = {};
  const bool is_there = links == Links::refuse ? ::lstat(path.c_str(), &status) == 0
                                               : ::stat(path.c_str(), &status) == 0;
  // ENXIO: nobody reads this pipe, or listens at this socket. EISDIR: it was to be written.
  const bool is_kind = error_number == ELOOP || error_number == ENXIO || error_number == EISDIR;
  if (is_there && is_kind && !S_ISREG(status.st_mode)) {
    return refused(status.st_mode);
  }
  return {.descriptor = {},
          .size_bytes = 0,
          .defect = fmt::format("cannot be opened: {}", std::strerror(error_number)),
          .error_number = error_number};
}

}  // namespace

RegularFile open_regular_file(const std::filesystem::path& path, int flags, Links links) {
  FOURFOLD_EXPECT((flags & O_TRUNC) == 0);
  flags |= O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (links == Links::refuse ? O_NOFOLLOW : 0);
  RegularFile file;
  do {
    file.descriptor.reset(::open(path.c_str(), flags, 0666));
  } while (!file.descriptor && errno == EINTR);
  struct stat status = {};
  if (!file.descriptor || ::fstat(file.descriptor.get(), &status) != 0) {
    return not_opened(path, links, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return refused(status.st_mode);
  }
  file.size_bytes = static_cast<std::uint64_t>(status.st_size);
  return file;
}

std::optional<std::string> read_regular_file(const std::filesystem::path& path, Links links,
                                             std::uint64_t most_bytes, std::string& contents) {
  const RegularFile file = open_regular_file(path, O_RDONLY, links);
  if (!file.descriptor) {
    return file.defect;
  }
  if (file.size_bytes > most_bytes) {
    return fmt::format("has {} bytes, more than the {} it may have", file.size_bytes, most_bytes);
  }
  contents.resize(file.size_bytes);
  for (std::size_t done = 0; done < contents.size();) {
    const ssize_t got =
        ::read(file.descriptor.get(), contents.data() + done, contents.size() - done);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return got < 0 ? fmt::format("cannot be read at byte {} ({})", done, std::strerror(errno))
                     : fmt::format("ends at byte {}, in the middle of what it should hold", done);
    }
    done += static_cast<std::size_t>(got);
  }
  return std::nullopt;
}

}  // namespace fourfold
