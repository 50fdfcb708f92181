// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// What may lie in a directory under the name of a lease.
#include "captured_log.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/directory_lease.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/stat.h>

#include <filesystem>
#include <string>

using namespace fourfold;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using harness::ScratchFolder;
using io::DirectoryLease;
using io::LeaseHolder;
namespace fs = std::filesystem;

namespace {

const io::LeaseOptions quick{.beat = 20ms, .silence = 400ms};

LeaseHolder other(const std::string& job = "") {
  return {.host = "node2", .pid = 77, .job = job};
}

void write_lease(const fs::path& directory, const std::string& text) {
  fs::create_directories(directory);
  harness::write_bytes(directory / ".lease", text);
}

}  // namespace

TEST_CASE("what is no file is no lease, and all may read one", "[lease]") {
  const ScratchFolder scratch;
  const io::LeaseOptions patient{.beat = 20ms, .silence = 1h};
  const harness::CapturedLog log;
  const auto refuses = [&] {
    CHECK_THROWS_MATCHES(DirectoryLease(scratch / "c", other("42"), patient), UserError,
                         MessageMatches(ContainsSubstring("a lease is a file")));
    fs::remove(scratch / "c" / ".lease");
  };
  fs::create_directories(scratch / "c" / ".lease");
  refuses();
  REQUIRE(::mkfifo((scratch / "c" / ".lease").c_str(), 0600) == 0);
  refuses();
  fs::create_symlink("nowhere", scratch / "c" / ".lease");
  refuses();
  CHECK(log.text().empty());  // and nobody watched them
  const mode_t before = ::umask(077);
  const DirectoryLease lease(scratch / "c", other("42"), quick);
  ::umask(before);
  CHECK((fs::status(scratch / "c" / ".lease").permissions() & fs::perms::others_read) !=
        fs::perms::none);
}

TEST_CASE("a lease that makes no sense is watched like any other", "[lease]") {
  const ScratchFolder scratch;
  for (const std::string& text :
       {std::string(), std::string("fourfold-lease"), std::string("fourfold-lease 1"),
        std::string("fourfold-lease 2 x y - 1 - 0 0\n"), std::string("fourfold-lease 1 x\n"),
        std::string(1, '\0'), std::string(77, '\0')}) {
    write_lease(scratch / "c", text);
    const harness::CapturedLog log;
    const DirectoryLease lease(scratch / "c", other(), quick);
    lease.check();
  }
}

TEST_CASE("a file of somebody's that is called like a lease is left alone", "[lease]") {
  const ScratchFolder scratch;
  for (const char* const text : {"what?", "flat 12, second floor", "fourfold notes\n", "f", "four",
                                 "fourfold-lease is what the landlord calls it\n"}) {
    write_lease(scratch / "c", text);
    CHECK_THROWS_MATCHES(
        DirectoryLease(scratch / "c", other(), quick), UserError,
        MessageMatches(ContainsSubstring(".lease: is no lease that fourfold wrote")));
    CHECK(harness::read_bytes(scratch / "c" / ".lease") == text);
  }
}
