// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A library to preload: it numbers the calls by which a process changes the file system below
/// FOURFOLD_CRASH_UNDER, and does at call FOURFOLD_CRASH_AT what FOURFOLD_CRASH_HOW says: "before"
/// and "after" end the process there as kill -9 would, "alone" ends the thread that calls, which is
/// one rank, and the process when the other ranks have had time to get as far as they can, "short"
/// writes half and goes on, "again" fails once with EINTR, a number fails with that errno, "stop"
/// stops the process, which goes on with that call when it is continued. The last number is written
/// to FOURFOLD_CRASH_COUNT.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int most_descriptors = 4096;
/// A whole save takes less.
constexpr int alone_us = 15'000;
std::array<std::atomic<bool>, most_descriptors> is_ours;
std::array<std::atomic<bool>, most_descriptors> is_writable;  ///< closing others changes nothing
std::atomic<long> calls{0};

const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_below(const char* path) {
  const char* folder = setting("FOURFOLD_CRASH_UNDER");
  return *folder != '\0' && path != nullptr && std::strncmp(path, folder, std::strlen(folder)) == 0;
}

bool is_open(int descriptor) {
  return descriptor >= 0 && descriptor < most_descriptors && is_ours[descriptor];
}

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

enum class Outcome { normal, fail, shortened };

/// Counts one call. Ends the process when it is the one and "before" is asked for.
Outcome next_call(bool& ends_after) {
  const long number = ++calls;
  ends_after = false;
  if (number != std::atol(setting("FOURFOLD_CRASH_AT"))) {
    return Outcome::normal;
  }
  const std::string how = setting("FOURFOLD_CRASH_HOW");
  if (how == "alone") {
    ::usleep(alone_us);
  }
  if (how == "before" || how == "alone") {
    ::_exit(99);
  }
  if (how == "stop") {
    ::raise(SIGSTOP);
  }
  ends_after = how == "after";
  if (how == "short") {
    return Outcome::shortened;
  }
  if (how == "again" || std::atoi(how.c_str()) != 0) {
    errno = how == "again" ? EINTR : std::atoi(how.c_str());
    return Outcome::fail;
  }
  return Outcome::normal;
}

/// Runs a call that returns -1 on failure under its outcome.
template <class Call>
auto counted(bool counts, const Call& call) -> decltype(call(Outcome::normal)) {
  if (!counts) {
    return call(Outcome::normal);
  }
  bool ends_after = false;
  const Outcome outcome = next_call(ends_after);
  if (outcome == Outcome::fail) {
    return -1;
  }
  const auto result = call(outcome);
  if (ends_after) {
    ::_exit(99);
  }
  return result;
}

/// Says at the end how many calls there were.
struct Report {
  ~Report() {
    const char* path = setting("FOURFOLD_CRASH_COUNT");
    if (*path != '\0') {
      if (std::FILE* file = std::fopen(path, "w")) {
        std::fprintf(file, "%ld\n", calls.load());
        std::fclose(file);
      }
    }
  }
} report;

/// Where the names lie that are opened in an open folder: its path and a slash, or nothing for a
/// path that stands alone.
std::string place_of(int folder, const char* path) {
  if (folder == AT_FDCWD || path == nullptr || *path == '/') {
    return {};
  }
  std::array<char, 4096> place{};
  const ssize_t length =
      ::readlink(("/proc/self/fd/" + std::to_string(folder)).c_str(), place.data(), place.size());
  return length < 0 ? std::string()
                    : std::string(place.data(), static_cast<std::size_t>(length)) + "/";
}

/// `call` opens `path`.
template <class Call>
int open_counted(const char* path, int flags, const Call& call) {
  const bool creates = (flags & O_CREAT) != 0 && is_below(path);
  const int descriptor = counted(creates, [&](Outcome) { return call(); });
  if (descriptor >= 0 && descriptor < most_descriptors) {
    is_ours[descriptor] = is_below(path);
    // What is opened for both, and not made, is so for a lock.
    is_writable[descriptor] = (flags & O_ACCMODE) == O_WRONLY || creates;
  }
  return descriptor;
}

mode_t mode_of(int flags, std::va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  const auto call = real<int (*)(const char*, int, ...)>("open");
  return open_counted(path, flags, [&] { return call(path, flags, mode); });
}

int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  const auto call = real<int (*)(const char*, int, ...)>("open64");
  return open_counted(path, flags, [&] { return call(path, flags, mode); });
}

int openat(int folder, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  const auto call = real<int (*)(int, const char*, int, ...)>("openat");
  const std::string whole = place_of(folder, path) + path;
  return open_counted(whole.c_str(), flags, [&] { return call(folder, path, flags, mode); });
}

int close(int descriptor) {
  const bool counts = is_open(descriptor) && is_writable[descriptor];
  if (is_open(descriptor)) {
    is_ours[descriptor] = false;
  }
  const auto call = real<int (*)(int)>("close");
  bool ends_after = false;
  const Outcome outcome = counts ? next_call(ends_after) : Outcome::normal;
  const int error_number = errno;
  const int result = call(descriptor);  // a failing close closes all the same
  if (ends_after) {
    ::_exit(99);
  }
  if (outcome == Outcome::fail) {
    errno = error_number;
    return -1;
  }
  return result;
}

ssize_t write(int descriptor, const void* data, size_t bytes) {
  const auto call = real<ssize_t (*)(int, const void*, size_t)>("write");
  return counted(is_open(descriptor), [&](Outcome outcome) {
    return call(descriptor, data, outcome == Outcome::shortened ? (bytes + 1) / 2 : bytes);
  });
}

ssize_t pwrite64(int descriptor, const void* data, size_t bytes, off64_t offset) {
  const auto call = real<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  return counted(is_open(descriptor), [&](Outcome outcome) {
    return call(descriptor, data, outcome == Outcome::shortened ? (bytes + 1) / 2 : bytes, offset);
  });
}

ssize_t pwrite(int descriptor, const void* data, size_t bytes, off_t offset) {
  return pwrite64(descriptor, data, bytes, offset);
}

int ftruncate(int descriptor, off_t bytes) {
  const auto call = real<int (*)(int, off_t)>("ftruncate");
  return counted(is_open(descriptor), [&](Outcome) { return call(descriptor, bytes); });
}

int fallocate(int descriptor, int mode, off_t offset, off_t bytes) {
  const auto call = real<int (*)(int, int, off_t, off_t)>("fallocate");
  return counted(is_open(descriptor),
                 [&](Outcome) { return call(descriptor, mode, offset, bytes); });
}

int fsync(int descriptor) {
  const auto call = real<int (*)(int)>("fsync");
  return counted(is_open(descriptor), [&](Outcome) { return call(descriptor); });
}

int fdatasync(int descriptor) {
  const auto call = real<int (*)(int)>("fdatasync");
  return counted(is_open(descriptor), [&](Outcome) { return call(descriptor); });
}

int mkdir(const char* path, mode_t mode) {
  const auto call = real<int (*)(const char*, mode_t)>("mkdir");
  return counted(is_below(path), [&](Outcome) { return call(path, mode); });
}

int rename(const char* from, const char* to) {
  const auto call = real<int (*)(const char*, const char*)>("rename");
  return counted(is_below(to), [&](Outcome) { return call(from, to); });
}

int unlink(const char* path) {
  const auto call = real<int (*)(const char*)>("unlink");
  const bool changes =
      is_below(path) && ::faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  return counted(changes, [&](Outcome) { return call(path); });
}

int rmdir(const char* path) {
  const auto call = real<int (*)(const char*)>("rmdir");
  return counted(is_below(path), [&](Outcome) { return call(path); });
}

}  // extern "C"
