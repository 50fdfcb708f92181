// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "captured_log.hpp"
#include "file_size_limit.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/line_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <string>

using fourfold::ExitCode;
using fourfold::UserError;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;
using fourfold::harness::write_bytes;
using fourfold::io::LineFile;

TEST_CASE("lines are added after what is there, each whole at once", "[line_file]") {
  const ScratchFolder folder;
  LineFile file(folder / "log", "go away");
  CHECK_FALSE(std::filesystem::exists(folder / "log"));  // before there is anything to say
  file.sync();
  file.append("one");
  CHECK(read_bytes(folder / "log") == "one\n");
  file.append("");
  LineFile(folder / "log", "go away").append("two");
  file.append("three");
  file.sync();
  CHECK(read_bytes(folder / "log") == "one\n\ntwo\nthree\n");
}

TEST_CASE("a line that was cut off is ended first", "[line_file]") {
  const ScratchFolder folder;
  write_bytes(folder / "log", "one\ntw");
  LineFile file(folder / "log", "go away");
  file.append("three");
  file.append("four");
  CHECK(read_bytes(folder / "log") == "one\ntw\nthree\nfour\n");
}

TEST_CASE("what cannot be written is said, with the way out", "[line_file]") {
  const ScratchFolder folder;
  const auto refuses = [](LineFile& file, const std::string& reason) {
    try {
      file.append("one");
      return false;
    } catch (const UserError& error) {
      const std::string what = error.what();
      return error.code() == ExitCode::cannot_write && what.find(reason) != std::string::npos &&
             what.find("make room or go away") != std::string::npos;
    }
  };
  LineFile nowhere(folder / "no" / "log", "go away");
  CHECK(refuses(nowhere, "No such file"));
  LineFile full(folder / "log", "go away");
  const fourfold::harness::FileSizeLimit limit(2);
  CHECK(refuses(full, "File too large"));
}

TEST_CASE("nothing is written through a link, nor to what is no regular file", "[line_file]") {
  const ScratchFolder folder;
  write_bytes(folder / "other", "mine\n");
  std::filesystem::create_symlink("other", folder / "link");
  std::filesystem::create_symlink("missing", folder / "dangling");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::filesystem::create_directory(folder / "folder");
  for (const char* const name : {"link", "dangling", "pipe", "folder", "/dev/null"}) {
    CAPTURE(name);
    LineFile file(folder / name, "go away");
    CHECK_THROWS_WITH(file.append("one"),
                      Catch::Matchers::ContainsSubstring(name) &&
                          Catch::Matchers::ContainsSubstring("regular file") &&
                          Catch::Matchers::ContainsSubstring("remove it or go away"));
  }
  CHECK(read_bytes(folder / "other") == "mine\n");
  CHECK_FALSE(std::filesystem::exists(folder / "missing"));
}

TEST_CASE("lines of who was taken over come nowhere", "[line_file]") {
  using fourfold::io::DirectoryLease;
  const ScratchFolder folder;
  const bool has_died = GENERATE(true, false);
  LineFile stale(folder / "log", "go away");
  stale.append("one");
  if (has_died) {  // or given its lease back, and ended
    write_bytes(folder / ".lease", "fourfold-lease 1 aaaa node1 - 77 41 0 12\n");
    std::filesystem::create_directory(folder / ".lease.d-0123456789abcdef");
  }
  const fourfold::harness::CapturedLog log;
  const DirectoryLease lease(
      folder.path(), {.host = "node2", .pid = 78},
      {.beat = std::chrono::milliseconds(10), .silence = std::chrono::milliseconds(60)});
  LineFile file(folder / "log", "go away");
  file.append("two");
  stale.append("three");
  file.append("four");
  CHECK(read_bytes(folder / "log") == (has_died ? "one\ntwo\nfour\n" : "one\ntwo\nthree\nfour\n"));
  LineFile(folder / "other", "go away").append("a new one");
  CHECK(read_bytes(folder / "other") == "a new one\n");
}
