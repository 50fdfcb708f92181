// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/host_memory.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace fourfold::device {
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

}  // namespace fourfold::device
