// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/step_place.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <filesystem>

using namespace fourfold;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using harness::write_bytes;
namespace fs = std::filesystem;

TEST_CASE("a place in a step is known, however it is written", "[step_place]") {
  const harness::ScratchFolder scratch;
  const fs::path step = scratch / "c" / "step-000000004";
  fs::create_directories(step);
  write_bytes(step / "MANIFEST.json", "{}");
  write_bytes(step / "index.h5", "");
  fs::create_directory_symlink(step, scratch / "link");
  for (const fs::path& place :
       {step, step / "", step / ".", step / "sub" / "deep" / "file",
        scratch / "c" / "x" / ".." / step.filename(), scratch / "link", scratch / "link" / "log"}) {
    CAPTURE(place);
    CHECK(io::is_place_in_step(place));
    CHECK_THROWS_MATCHES(io::refuse_place_in_step(place), UserError,
                         MessageMatches(ContainsSubstring("lies in the checkpoint")));
    CHECK_THROWS_AS(io::refuse_step_as_directory(place), UserError);
  }
  for (const fs::path& place :
       {scratch / "c", scratch / "c" / "step-000000005", scratch / "link.bin"}) {
    CHECK_FALSE(io::is_place_in_step(place));
    CHECK_NOTHROW(io::refuse_step_as_directory(place));
  }
}

TEST_CASE("a damaged step is one by its name, another program's files make none", "[step_place]") {
  const harness::ScratchFolder scratch;
  const fs::path step = scratch / "step-000000004";
  const fs::path other = scratch / "results";
  fs::create_directories(step);
  fs::create_directories(other);
  CHECK_FALSE(io::is_place_in_step(step / "log"));  // nothing is in it
  for (const char* name : {"MANIFEST.json", "index.h5", "shard-00000-of-00002.h5"}) {
    CAPTURE(name);
    write_bytes(step / name, "");
    write_bytes(other / name, "");
    CHECK(io::is_place_in_step(step / "log"));
    CHECK_FALSE(io::is_place_in_step(other / "log"));
    fs::remove(step / name);
    fs::remove(other / name);
  }
}
