// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/batch/chain.hpp>
#include <fourfold/telemetry/run_files.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace fourfold::batch;
using fourfold::harness::ScratchFolder;
using fourfold::harness::write_bytes;

TEST_CASE("a finished run is finished until it is wanted longer", "[finished_file]") {
  const ScratchFolder folder;
  CHECK_FALSE(is_finished(folder.path(), 1));
  write_finished(folder.path(), 20);
  CHECK(is_finished(folder.path(), 20));
  CHECK(is_finished(folder.path(), 10));
  CHECK_FALSE(is_finished(folder.path(), 21));
  write_bytes(fourfold::telemetry::RunFiles(folder.path()).finished(), "");  // made with touch(1)
  CHECK(is_finished(folder.path(), 21));
}
