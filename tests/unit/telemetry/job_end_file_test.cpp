// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/telemetry/own_files.hpp>
#include <fourfold/telemetry/run_files.hpp>

#include <catch2/catch_test_macros.hpp>

#include <fstream>
#include <string>

using fourfold::telemetry::moved_end_of;

TEST_CASE("a moved end is that of its own job and start", "[job_end_file]") {
  const fourfold::harness::ScratchFolder folder;
  const auto told = [&](const std::string& text) {
    std::ofstream(fourfold::telemetry::RunFiles(folder.path()).job_end()) << text;
    return moved_end_of({.id = "71_3", .restarts = 2}, folder.path());
  };
  CHECK_FALSE(moved_end_of({.id = "71_3", .restarts = 2}, folder.path()));
  CHECK(told("71_3 2 4000000000\n") == 4000000000);
  CHECK(told("71_3 2 4000000000") == 4000000000);
  for (const std::string& other :
       {std::string("71_3 1 4000000000"), std::string("71_4 2 4000000000"), std::string("71_3 2"),
        std::string("71_3 2 soon"), std::string("71_3 2 -5"), std::string("71_3 2 0"),
        std::string("71_3 2 99999999999999999999"), std::string("\0\0\n", 3), std::string(),
        "71_3 2 4000000000" + std::string(5000, ' ')}) {
    CAPTURE(other);
    CHECK_FALSE(told(other));
  }
}
