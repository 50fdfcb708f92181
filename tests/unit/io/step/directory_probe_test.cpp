// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/at_signal.hpp"
#include "file_size_limit.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/directory_probe.hpp>
#include <fourfold/io/step_place.hpp>

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace fourfold::io {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a probe writes, reads, renames and links, and leaves nothing", "[probe]") {
  const harness::ScratchFolder folder;
  const DirectoryProbe probe = probe_directory(folder.path(), 3U << 20U, 60);
  CHECK(probe.bytes == 3U << 20U);
  CHECK(probe.write_s > 0);
  CHECK(probe.read_s > 0);
  const fs::path one = folder.path() / "one";
  std::ofstream(one) << "x";
  std::error_code failure;
  fs::create_hard_link(one, folder.path() / "two", failure);
  CHECK(probe.has_links == !failure);
  fs::remove(one);
  fs::remove(folder.path() / "two");
  CHECK(fs::is_empty(folder.path()));
  CHECK(probe_directory(folder.path(), 1U << 30U, 0).bytes == 1U << 20U);
  const Room room = room_of(folder.path());
  REQUIRE(room.bytes.has_value());
  const auto available = fs::space(folder.path()).available;
  CHECK(*room.bytes > available / 2);
  CHECK(*room.bytes < available * 2);
}

TEST_CASE("a directory that is not there, or takes no more, is told", "[probe]") {
  const harness::ScratchFolder folder;
  CHECK_THROWS_AS(probe_directory(folder.path() / "missing", 1, 1), UserError);
  {
    const harness::FileSizeLimit limit(100'000);
    CHECK_THROWS_AS(probe_directory(folder.path(), 1, 1), UserError);
  }
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("a probe file is seen by its word alone, and swept when its maker has died", "[probe]") {
  const harness::ScratchFolder folder;
  const std::string word = "0123456789abcdef";
  {
    const ProbeFile file(folder.path(), word);
    CHECK(ProbeFile::is_seen(folder.path(), word));
    CHECK_FALSE(ProbeFile::is_seen(folder.path(), "0123456789abcdee"));
    CHECK(leftovers_in(folder.path()).size() == 1);
    remove_old_probes(folder.path());  // it is young
    CHECK(ProbeFile::is_seen(folder.path(), word));
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(1));
    }
    remove_old_probes(folder.path());
    CHECK_FALSE(ProbeFile::is_seen(folder.path(), word));
  }
  const ProbeFile file(folder.path(), ProbeFile::new_word());
  remove_noted();  // as a signal would
  CHECK(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace fourfold::io
