// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace fourfold::device {

/// How much memory this process takes beyond what it had at some moment, as the system counts it:
/// on a host build pages of its own and shared ones (RssAnon and RssShmem of /proc/self/status),
/// not files that are mapped, whose pages the system takes back as it likes.
class MemoryWatch {
 public:
  /// Counts from here on.
  MemoryWatch();

  /// Looks; what comes and goes between two looks is not seen.
  void look();
  /// The most that was seen. 0 where the system does not tell.
  std::size_t peak_bytes() const noexcept { return peak_bytes_; }

 private:
  std::size_t before_bytes_;
  std::size_t peak_bytes_ = 0;
};

/// Makes the allocator give large blocks back when they are freed, for the life of the process.
/// Left alone, glibc takes everything up to the size of the largest block ever freed from one heap,
/// where the kernels' scratch and what lies between hold each other's room. To call before the
/// first thread.
void keep_heap_small() noexcept;

/// Gives memory that was freed back to the system, as after set-up, whose buffers will not be
/// wanted again. Takes milliseconds.
void return_freed_memory() noexcept;

/// Bytes that this process and those beside it may still take: what the system has left, or less
/// where a control group (a container, a job) allows less. Nothing if nobody says.
/// @param root  of /proc and /sys
std::optional<std::int64_t> available_memory_bytes(const std::filesystem::path& root = "/");

/// Bytes of memory that the machine has. Nothing if nobody says.
std::optional<std::int64_t> total_memory_bytes(const std::filesystem::path& root = "/");

/// How full the memory of this process's device is, of all that use it together. On a host build,
/// whose memory MemoryWatch watches, it sees nothing: zeros.
class DeviceMemoryWatch {
 public:
  /// Counts from here on. @throws UserError where there is no device
  DeviceMemoryWatch();

  /// Asks the device: some ten microseconds, in which no work of its is waited for.
  void look();
  /// Looks after each of the first steps, in which buffers find their size, then every ten
  /// seconds. @param now_s  of any clock that goes on. @return whether it looked
  bool look_now_and_then(double now_s);

  std::size_t used_bytes() const noexcept { return used_bytes_; }    ///< at the last look
  std::size_t total_bytes() const noexcept { return total_bytes_; }  ///< that the device has
  /// The most that was seen beyond what was in use at the beginning.
  std::size_t peak_bytes() const noexcept { return peak_bytes_; }

 private:
  std::size_t before_bytes_ = 0;
  std::size_t used_bytes_ = 0;
  std::size_t total_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
  std::int64_t looks_ = 0;
  double looked_s_ = 0;
};

}  // namespace fourfold::device
