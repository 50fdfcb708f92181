// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/temporary_name.hpp>

#include <catch2/catch_test_macros.hpp>
#include <file_size_limit.hpp>
#include <scratch_folder.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace fs = std::filesystem;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;
using fourfold::io::AtomicFile;

namespace {

std::ptrdiff_t entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

}  // namespace

TEST_CASE("a file appears whole, when it is published", "[atomic_file]") {
  const ScratchFolder scratch;
  const fs::path path = scratch.path() / "file";
  const std::string large(3'000'001, 'x');
  {
    AtomicFile file(path);
    file.write("begin ");
    file.write(large);
    file.sync();
    CHECK_FALSE(fs::exists(path));
    file.publish();
  }
  CHECK(read_bytes(path) == "begin " + large);
  CHECK(entries(scratch.path()) == 1);
}

TEST_CASE("without publish nothing is left and an older file stays", "[atomic_file]") {
  const ScratchFolder scratch;
  const fs::path path = scratch.path() / "file";
  scratch.write("file", "old");
  {
    AtomicFile file(path);
    file.write("new");
    file.sync();
  }
  CHECK(read_bytes(path) == "old");
  CHECK(entries(scratch.path()) == 1);
  AtomicFile file(path);
  file.publish();
  CHECK(read_bytes(path).empty());
}

TEST_CASE("who is asked before a file takes its name can keep the older one", "[atomic_file]") {
  const ScratchFolder scratch;
  const fs::path path = scratch.write("file", "older");
  {
    AtomicFile file(path);
    file.write("newer");
    CHECK_THROWS_AS(file.publish([&] {
      CHECK(entries(scratch.path()) == 2);  // it is written
      throw fourfold::UserError(fourfold::ExitCode::cannot_write, "not ours");
    }),
                    fourfold::UserError);
  }
  CHECK(read_bytes(path) == "older");
  CHECK(entries(scratch.path()) == 1);
}

TEST_CASE("a place that cannot be written is named, with the right exit code", "[atomic_file]") {
  const ScratchFolder scratch;
  try {
    const AtomicFile file(scratch.path() / "no" / "such" / "folder");
    FAIL("no error");
  } catch (const fourfold::UserError& error) {
    CHECK(error.code() == fourfold::ExitCode::cannot_write);
    CHECK(std::string(error.what()).find("no/such/folder") != std::string::npos);
  }
  fs::create_directories(scratch.path() / "taken" / "by a folder");
  AtomicFile file(scratch.path() / "taken");
  file.write("text");
  CHECK_THROWS_AS(file.publish(), fourfold::UserError);
}

TEST_CASE("a pipe or a device, or a link to one, is not replaced", "[atomic_file]") {
  const ScratchFolder scratch;
  const auto pipe = scratch.path() / "pipe";
  const auto link = scratch.path() / "link";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  fs::create_symlink("/dev/null", link);
  for (const auto& path : {pipe, link}) {
    try {
      AtomicFile file(path);
      file.write("text");
      file.publish();
      FAIL("it was replaced");
    } catch (const fourfold::UserError& error) {
      CHECK(error.code() == fourfold::ExitCode::cannot_write);
      CHECK(std::string(error.what()).find(path.string()) != std::string::npos);
    }
  }
  CHECK(fs::is_fifo(pipe));
  CHECK(fs::is_symlink(link));
  CHECK(entries(scratch.path()) == 2);
}

TEST_CASE("a pipe that has come while the file was written is not replaced", "[atomic_file]") {
  const ScratchFolder scratch;
  const auto path = scratch.write("file", "old");
  {
    AtomicFile file(path);
    file.write("text");
    fs::remove(path);
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    CHECK_THROWS_AS(file.publish(), fourfold::UserError);
  }
  CHECK(fs::is_fifo(path));
  CHECK(entries(scratch.path()) == 1);
}

TEST_CASE("a disk that fills up is named by the file's own name, and nothing is left",
          "[atomic_file]") {
  const ScratchFolder scratch;
  const fs::path path = scratch.write("file", "old");
  {
    const fourfold::harness::FileSizeLimit limited(2'000'000);
    try {
      AtomicFile file(path);
      file.write(std::string(3'000'001, 'x'));
      file.publish();
      FAIL("no error");
    } catch (const fourfold::UserError& error) {
      CHECK(error.code() == fourfold::ExitCode::cannot_write);
      const std::string text = error.what();
      CHECK(text.starts_with(path.string() + ": cannot be written"));
      CHECK(text.find("File too large") != std::string::npos);
      CHECK(text.find("checkpoint") == std::string::npos);
    }
  }
  CHECK(read_bytes(path) == "old");
  CHECK(entries(scratch.path()) == 1);
}

TEST_CASE("what a dead process of the same number left is replaced, a link not followed",
          "[atomic_file]") {
  const ScratchFolder scratch;
  const fs::path path = scratch / "file";
  const fs::path other = scratch.write("other", "mine");
  fs::create_symlink(other, fourfold::io::temporary_sibling(path, std::to_string(::getpid())));
  AtomicFile file(path);
  file.write("text");
  file.publish();
  CHECK(read_bytes(path) == "text");
  CHECK_FALSE(fs::is_symlink(path));
  CHECK(read_bytes(other) == "mine");
}
