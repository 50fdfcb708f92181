// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

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

}  // namespace fourfold::device
