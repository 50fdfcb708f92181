// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/device/process_memory.hpp>

#include <catch2/catch_test_macros.hpp>

#include <fstream>
#include <string>

namespace fourfold::device {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST_CASE("the tightest limit counts: the system's or that of a group around the process",
          "[memory]") {
  const harness::ScratchFolder root;
  CHECK_FALSE(available_memory_bytes(root.path()).has_value());
  write(root.path() / "proc/meminfo", "MemTotal:  100 kB\nMemAvailable:     64 kB\n");
  CHECK(available_memory_bytes(root.path()) == 64 * 1024);
  CHECK(total_memory_bytes(root.path()) == 100 * 1024);
  write(root.path() / "proc/self/cgroup", "1:cpu:/other\n0::/job/step\n");
  const auto groups = root.path() / "sys/fs/cgroup";
  write(groups / "job/step/memory.max", "max\n");
  write(groups / "job/step/memory.current", "1000\n");
  CHECK(available_memory_bytes(root.path()) == 64 * 1024);
  write(groups / "job/memory.max", "30000\n");
  write(groups / "job/memory.current", "10000\n");
  CHECK(available_memory_bytes(root.path()) == 20'000);
  write(groups / "memory.max", "5000\n");
  write(groups / "memory.current", "6000\n");
  CHECK(available_memory_bytes(root.path()) == 0);
}

}  // namespace
}  // namespace fourfold::device
