// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/device.hpp>
#include <fourfold/device/process_memory.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <mutex>
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

namespace {

namespace fs = std::filesystem;

std::optional<std::int64_t> number_in(const fs::path& path) {
  std::ifstream in(path);
  std::int64_t number = 0;
  return in >> number ? std::optional(number) : std::nullopt;  // "max" is none
}

std::optional<std::int64_t> system_bytes(const fs::path& root, std::string_view wanted) {
  std::ifstream in(root / "proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string label;
    std::int64_t kib = 0;
    if (words >> label >> kib && label == wanted) {
      return kib * 1024;
    }
  }
  return std::nullopt;
}

/// Of this process's control group (version 2) and those around it the tightest.
std::optional<std::int64_t> group_bytes(const fs::path& root) {
  std::ifstream in(root / "proc/self/cgroup");
  std::optional<std::int64_t> least;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("0::/")) {
      continue;
    }
    const fs::path mount = root / "sys/fs/cgroup";
    for (fs::path group = fs::path(line.substr(4)).lexically_normal();;
         group = group.parent_path()) {
      const auto limit = number_in(mount / group / "memory.max");
      const auto used = number_in(mount / group / "memory.current");
      if (limit && used) {
        least = std::min(least.value_or(*limit), std::max<std::int64_t>(0, *limit - *used));
      }
      if (group.empty()) {
        break;
      }
    }
  }
  return least;
}

}  // namespace

std::optional<std::int64_t> available_memory_bytes(const fs::path& root) {
  const auto system = system_bytes(root, "MemAvailable:");
  const auto group = group_bytes(root);
  return system && group ? std::min(*system, *group) : system ? system : group;
}

std::optional<std::int64_t> total_memory_bytes(const fs::path& root) {
  return system_bytes(root, "MemTotal:");
}

namespace {

constexpr std::int64_t first_looks = 3;
constexpr double look_every_s = 10;

}  // namespace

DeviceMemoryWatch::DeviceMemoryWatch() {
  look();
  before_bytes_ = used_bytes_;
  peak_bytes_ = 0;
}

void DeviceMemoryWatch::look() {
  if (!has_own_memory) {
    return;
  }
  const MemoryOwner owner = owner_of(MemoryKind::device);
  total_bytes_ = owner.total_bytes;
  used_bytes_ = owner.total_bytes - std::min(owner.free_bytes, owner.total_bytes);
  peak_bytes_ = std::max(peak_bytes_, used_bytes_ - std::min(used_bytes_, before_bytes_));
}

bool DeviceMemoryWatch::look_now_and_then(double now_s) {
  const bool is_due = looks_ < first_looks || now_s - looked_s_ >= look_every_s;
  if (!has_own_memory || !is_due) {
    return false;
  }
  ++looks_;
  looked_s_ = now_s;
  look();
  return true;
}

}  // namespace fourfold::device
