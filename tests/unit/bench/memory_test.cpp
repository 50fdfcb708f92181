// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>

#include <catch2/catch_test_macros.hpp>

#include <fstream>
#include <string>

namespace fourfold::bench {
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

TEST_CASE("sizes that do not fit are refused, and one that does is named", "[memory]") {
  Request request;
  request.operations = {Operation::all_to_all};
  request.sizes_bytes = {1024, 2048, 4096};
  // Two buffers on each of two ranks, and a tenth is left alone.
  CHECK_NOTHROW(require_memory(request, 2, 2, 20'000));
  CHECK_NOTHROW(require_memory(request, 2, 2, std::nullopt));
  try {
    require_memory(request, 2, 2, 16'384);
    FAIL("nothing was thrown");
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::config);
    CHECK(std::string(error.what()).find("use --max-bytes 2048, or fewer ranks") !=
          std::string::npos);
  }
  CHECK_THROWS_AS(require_memory(request, 2, 2, 0), UserError);
}

}  // namespace
}  // namespace fourfold::bench
