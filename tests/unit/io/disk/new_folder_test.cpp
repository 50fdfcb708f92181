// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "file_size_limit.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/made_folders.hpp>

#include <catch2/catch_test_macros.hpp>

#include <limits>
#include <string>

using fourfold::UserError;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;
using fourfold::io::AtomicFile;
using fourfold::io::NewFolder;

namespace {

std::size_t entries_of(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

void write(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.publish();
}

}  // namespace

TEST_CASE("a folder appears whole") {
  const ScratchFolder scratch;
  const std::filesystem::path path = scratch / "a/b";
  {
    NewFolder folder(path / "", 100);
    write(folder.path() / "x", "1");
    CHECK(!std::filesystem::exists(path));
    folder.publish();
  }
  CHECK(read_bytes(path / "x") == "1");
  CHECK(entries_of(scratch / "a") == 1);
}

TEST_CASE("a folder that is not published leaves nothing, and replaces nothing") {
  const ScratchFolder scratch;
  {
    const NewFolder folder(scratch / "out", 0);
    write(folder.path() / "x", "1");
  }
  CHECK(entries_of(scratch.path()) == 0);
  for (const char* name : {"file", "folder", "link"}) {
    const std::filesystem::path there = scratch / name;
    if (name == std::string("file")) {
      scratch.write(name, "mine");
    } else if (name == std::string("folder")) {
      std::filesystem::create_directory(there);
    } else {
      std::filesystem::create_symlink("nowhere", there);
    }
    CHECK_THROWS_AS(NewFolder(there, 0), UserError);
  }
  CHECK_THROWS_AS(NewFolder(scratch / "large", std::numeric_limits<std::uint64_t>::max()),
                  UserError);
  CHECK(entries_of(scratch.path()) == 3);
  {
    NewFolder folder(scratch / "late", 0);
    std::filesystem::create_directory(scratch / "late");  // somebody else's, meanwhile
    CHECK_THROWS_AS(folder.publish(), UserError);
  }
  CHECK(entries_of(scratch.path()) == 4);
}

TEST_CASE("large and small writes come out in order, and what fails leaves nothing") {
  const ScratchFolder scratch;
  std::string expected;
  AtomicFile file(scratch / "x");
  for (const std::size_t size : {3U, 1U << 20, 5U, (1U << 20) - 1, 0U, (3U << 20) + 7, 1U}) {
    const std::string part(size, static_cast<char>('a' + expected.size() % 26));
    file.write(part);
    expected += part;
  }
  file.publish();
  CHECK(read_bytes(scratch / "x") == expected);
  {
    const fourfold::harness::FileSizeLimit limit(1 << 20);
    AtomicFile large(scratch / "y");
    CHECK_THROWS_AS(large.write(expected), UserError);
  }
  CHECK(entries_of(scratch.path()) == 1);
}
