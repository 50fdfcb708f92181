// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "captured_log.hpp"
#include "scratch_folder.hpp"

#include <fourfold/io/directory_lease.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

using namespace fourfold;
using namespace std::chrono_literals;
using harness::ScratchFolder;
using io::DirectoryLease;
using io::LeaseHolder;
using io::LeaseOptions;
namespace fs = std::filesystem;

namespace {

LeaseOptions provisional() {
  return {.beat = 20ms, .silence = 400ms, .provisional = true};
}

LeaseHolder elsewhere(const std::string& host, const std::string& job = "") {
  return {.host = host, .pid = 77, .job = job};
}

}  // namespace

TEST_CASE("a provisional lease leaves the directory as it was", "[lease]") {
  const ScratchFolder scratch;
  const LeaseOptions options = provisional();
  const std::string stale = "fourfold-lease 1 aaaa node1 - 7 41 0 12\n";
  for (const bool is_confirmed_ : {false, true}) {
    fs::create_directories(scratch / "c");
    fs::create_directory(scratch / "there");
    scratch.write("c/.lease", stale);
    const auto before = harness::files_below(scratch.path());
    {
      const harness::CapturedLog log;
      DirectoryLease after_another(scratch / "c", elsewhere("node2", "42"), options);
      DirectoryLease new_folder(scratch / "there" / "deep" / "er", elsewhere("node2"), options);
      after_another.check();
      if (is_confirmed_) {
        after_another.confirm();
        new_folder.confirm();
        CHECK(harness::files_below(scratch.path()).size() == 2);  // nothing lies aside
      }
      after_another.check();
    }
    CHECK((harness::files_below(scratch.path()) == before) == !is_confirmed_);
    CHECK(fs::exists(scratch / "c" / ".lease") == !is_confirmed_);
    CHECK(fs::exists(scratch / "there" / "deep") == is_confirmed_);
    CHECK(fs::exists(scratch / "there"));
  }
  // What somebody else has put there meanwhile stays.
  {
    const DirectoryLease lease(scratch / "new" / "er", elsewhere("node2"), options);
    harness::write_bytes(scratch / "new" / "theirs", "x");
  }
  CHECK_FALSE(fs::exists(scratch / "new" / "er"));
  CHECK(fs::exists(scratch / "new" / "theirs"));
}

TEST_CASE("provisional leases are given back where no destructor will run", "[lease]") {
  const ScratchFolder scratch;
  const LeaseHolder dead{.host = "node1", .pid = 77, .job = "41"};
  fs::create_directory(scratch / "left");
  scratch.write("left/.lease", "fourfold-lease 1 aaaa node1 - 77 41 0 12 -\n");
  const auto before = harness::files_below(scratch.path());
  LeaseOptions options{.beat = 20ms, .silence = 60ms, .provisional = true};
  const DirectoryLease over(scratch / "left", elsewhere("node2", "43"), options);
  const DirectoryLease made(scratch / "new" / "deep", elsewhere("node2", "43"), options);
  DirectoryLease confirmed(scratch / "confirmed", elsewhere("node2", "43"), options);
  confirmed.confirm();
  options.provisional = false;
  const DirectoryLease plain(scratch / "plain", elsewhere("node2", "43"), options);
  io::give_back_provisional_leases();
  io::give_back_provisional_leases();  // who else hears of the end
  CHECK_FALSE(over.is_held());
  CHECK_FALSE(made.is_held());
  CHECK(over.was_given_back());
  CHECK_FALSE(confirmed.was_given_back());
  // Not "lost to another start": rank 0 would say so of a start that another rank has ended.
  CHECK_THROWS_WITH(over.check(), Catch::Matchers::ContainsSubstring(
                                      "was given back, because this start is being"));
  CHECK(confirmed.is_held());
  CHECK(plain.is_held());
  std::this_thread::sleep_for(5 * options.beat);  // no beat brings it back
  CHECK_FALSE(fs::exists(scratch / "new"));
  auto after = harness::files_below(scratch.path());
  std::erase_if(after, [](const auto& file) {
    return file.first.starts_with("confirmed/") || file.first.starts_with("plain/");
  });
  CHECK(after == before);
  CHECK(io::living_holder_of(scratch / "left", elsewhere("node2", "43"), ".lease")->job ==
        dead.job);
}
