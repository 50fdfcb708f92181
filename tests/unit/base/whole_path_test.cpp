// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/regular_file.hpp>

#include <catch2/catch_test_macros.hpp>

#include <filesystem>

using fourfold::whole_path;
namespace fs = std::filesystem;

TEST_CASE("a path leads to one place, however it is spelled", "[whole_path]") {
  const fs::path here = fs::current_path();
  CHECK(whole_path("a/b") == here / "a/b");
  CHECK(whole_path("./a//b/./") == here / "a/b");
  CHECK(whole_path("/a/b/") == "/a/b");
  CHECK(whole_path("/") == "/");
  CHECK(whole_path(".") == here);
  CHECK(whole_path("a/../b") == fs::weakly_canonical(here) / "b");
  CHECK(whole_path("/..") == "/");
}

TEST_CASE("above a link is above what it leads to", "[whole_path]") {
  const fourfold::harness::ScratchFolder scratch;
  const fs::path folder = fs::canonical(scratch.path());
  fs::create_directories(folder / "else/exp");
  fs::create_directory(folder / "home");
  fs::create_directory_symlink("../else/exp", folder / "home/link");
  CHECK(whole_path(folder / "home/link/../run.toml") == folder / "else/run.toml");
  CHECK(whole_path(folder / "home/link/../new/deep/..") == folder / "else/new");
  CHECK(whole_path(folder / "home/link/run.toml") == folder / "home/link/run.toml");
}
