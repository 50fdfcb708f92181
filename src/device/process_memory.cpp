// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/process_memory.hpp>

#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <fstream>
#include <mutex>
#include <string>

namespace fourfold::device {
namespace {

std::size_t bytes_in_use() {
  std::ifstream status("/proc/self/status");
  std::size_t kib = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:") || line.starts_with("RssShmem:")) {
      kib += std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10);
    }
  }
  return kib * 1024;
}

}  // namespace

MemoryWatch::MemoryWatch() : before_bytes_(bytes_in_use()) {}

void MemoryWatch::look() {
  const std::size_t now = bytes_in_use();
  peak_bytes_ = std::max(peak_bytes_, now - std::min(now, before_bytes_));
}

void keep_heap_small() noexcept {
#ifdef __GLIBC__
  // Above the scratch of most products, which is asked for with each of them.
  constexpr int mmap_from_bytes = 4 << 20;
  mallopt(M_MMAP_THRESHOLD, mmap_from_bytes);
  mallopt(M_TRIM_THRESHOLD, 2 * mmap_from_bytes);
#endif
}

void return_freed_memory() noexcept {
#ifdef __GLIBC__
  // Where another malloc is in the place of glibc's (a sanitizer's, jemalloc's), this is the first
  // call that glibc's own gets, and it sets that up without a lock: of two ranks that are threads
  // both would have its main arena, and the second to end would find nobody attached to it.
  static std::mutex one_at_a_time;
  const std::scoped_lock lock(one_at_a_time);
  malloc_trim(0);
#endif
}

}  // namespace fourfold::device
