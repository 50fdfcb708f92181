// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/step_place.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

using namespace fourfold;
using Names = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

Names sorted(Names names) {
  std::ranges::sort(names);
  return names;
}

}  // namespace

TEST_CASE("what dead jobs left is known by its name, and nothing else is taken away") {
  const harness::ScratchFolder scratch;
  const std::string word = "0123456789abcdef";
  const Names folders{".tmp-step-000000009-" + word, ".trash-" + word,
                      ".tmp-step-1234567890-" + word};
  const Names files{"..fast-level.tmp-" + word,
                    "..probe-" + word + ".tmp-" + word,
                    ".LATEST.tmp-" + word,
                    ".lease-" + word,
                    ".probe-" + word,
                    ".probe-" + word + "-17",
                    ".probe-doctor-" + word,
                    ".probe-doctor-" + word + "-renamed",
                    ".probe-doctor-" + word + "-linked"};
  const std::string aside = "damaged-step-000000003-" + word;
  const Names kept{".fast-level",
                   ".lease",
                   ".probe",
                   "LATEST",
                   "notes",
                   "step-000000001",
                   "step-000000002.tmp",
                   "tmp-step-000000009-" + word,
                   ".tmp-step-000000009-old",
                   ".tmp-step-" + word,
                   ".tmp-step--" + word,
                   ".trash-4567",
                   ".trash-" + word + "0",
                   ".lease-notes",
                   ".probe-" + word + "-",
                   ".probe-" + word + "-x",
                   ".probe-results",
                   ".probe-doctor-7",
                   ".probe-doctor-" + word + "-mine",
                   ".probe-" + word + "-linked",
                   ".LATEST.tmp-12",
                   "LATEST.tmp-99",
                   ".lease.d-mine",
                   "damaged-step-000000003-why"};
  for (const std::string& name : folders) {
    fs::create_directories(scratch / name / "step");
    scratch.write(name + "/step/shard", "bytes");
  }
  fs::create_directory(scratch / aside);
  for (const Names& each : {files, kept}) {
    for (const std::string& name : each) {
      scratch.write(name, "bytes");
    }
  }
  Names left = folders;
  left.insert(left.end(), files.begin(), files.end());
  CHECK(sorted(io::leftovers_in(scratch.path())) == sorted(left));
  left.push_back(aside);
  CHECK(sorted(io::leftovers_in(scratch.path(), true)) == sorted(left));
  CHECK(io::remove_leftovers(scratch.path()).empty());
  CHECK(io::leftovers_in(scratch.path(), true) == Names{aside});
  CHECK(io::remove_leftovers(scratch.path(), true).empty());
  Names remaining;
  for (const auto& entry : fs::directory_iterator(scratch.path())) {
    remaining.push_back(entry.path().filename());
  }
  CHECK(sorted(remaining) == sorted(kept));
}

TEST_CASE("a folder that is not there has nothing left in it, one that cannot be read is told of") {
  const harness::ScratchFolder scratch;
  CHECK(io::leftovers_in(scratch / "nothing").empty());
  fs::create_symlink("loop", scratch / "loop");
  CHECK_THROWS_AS(io::leftovers_in(scratch / "loop"), UserError);
}
