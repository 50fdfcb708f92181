// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/regular_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

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
RegularFile not_opened(int folder, const char* path, Links links, int error_number) {
  struct stat status = {};
  const bool is_there =
      ::fstatat(folder, path, &status, links == Links::refuse ? AT_SYMLINK_NOFOLLOW : 0) == 0;
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

RegularFile open_at(int folder, const char* path, int flags, Links links) {
  FOURFOLD_EXPECT((flags & O_TRUNC) == 0);
  flags |= O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (links == Links::refuse ? O_NOFOLLOW : 0);
  RegularFile file;
  do {
    file.descriptor.reset(::openat(folder, path, flags, 0666));
  } while (!file.descriptor && errno == EINTR);
  struct stat status = {};
  if (!file.descriptor || ::fstat(file.descriptor.get(), &status) != 0) {
    return not_opened(folder, path, links, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return refused(status.st_mode);
  }
  file.size_bytes = status.st_size;
  return file;
}

}  // namespace

RegularFile open_regular_file(const std::filesystem::path& path, int flags, Links links) {
  return open_at(AT_FDCWD, path.c_str(), flags, links);
}

RegularFile open_regular_file_in(int folder, const std::string& name, int flags) {
  return open_at(folder, name.c_str(), flags, Links::refuse);
}

FileDescriptor open_folder(const std::filesystem::path& path, Links links) {
  FileDescriptor folder;
  do {
    folder.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC |
                                          (links == Links::refuse ? O_NOFOLLOW : 0)));
  } while (!folder && errno == EINTR);
  return folder;
}

std::optional<std::string> read_regular_file(const std::filesystem::path& path, Links links,
                                             std::uint64_t most_bytes, std::string& contents) {
  return read_regular_file(open_regular_file(path, O_RDONLY, links), most_bytes, contents);
}

std::optional<std::string> read_regular_file(const RegularFile& file, std::uint64_t most_bytes,
                                             std::string& contents) {
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
    done += got;
  }
  return std::nullopt;
}

std::filesystem::path whole_path(const std::filesystem::path& path) {
  std::error_code failure;
  std::filesystem::path whole = std::filesystem::absolute(path, failure);
  if (!failure && std::ranges::find(whole, std::filesystem::path("..")) != whole.end()) {
    whole = std::filesystem::weakly_canonical(whole, failure);
  }
  if (failure) {
    return path;
  }
  whole = whole.lexically_normal();
  return whole.has_filename() || !whole.has_relative_path() ? whole : whole.parent_path();
}

bool begins_with_home(std::string_view path) {
  return path == "~" || path.starts_with("~/");
}

}  // namespace fourfold
