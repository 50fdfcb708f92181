// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "child_process.hpp"
#include "scratch_folder.hpp"

#include <fourfold/io/event_file.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstdlib>

using fourfold::harness::ScratchFolder;
using fourfold::io::EventFile;
using fourfold::io::EventScalar;

TEST_CASE("TensorBoard reads the scalars back") {
  const char* python = std::getenv("FOURFOLD_TEST_PYTHON");
  if (python == nullptr) {
    SKIP("FOURFOLD_TEST_PYTHON names no Python with tensorboard");
  }
  const ScratchFolder scratch;
  {
    EventFile file(scratch.path(), 0, 1700000000);
    for (int step = 1; step <= 6; ++step) {
      const std::array scalars{EventScalar{"train/loss", 10.0F - static_cast<float>(step)}};
      file.add(step, 1700000000 + step, scalars);
    }
    EventFile resumed(scratch.path(), 4, 1700000100);
    const std::array scalars{EventScalar{"train/loss", 1.25F}};
    resumed.add(4, 1700000101, scalars);
  }
  const std::filesystem::path script = scratch.write(
      "read.py",
      "import sys\n"
      "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
      "events = EventAccumulator(sys.argv[1])\n"
      "events.Reload()\n"
      "got = [(e.step, e.value) for e in events.Scalars('train/loss')]\n"
      "assert got == [(1, 9.0), (2, 8.0), (3, 7.0), (4, 1.25)], got\n");
  const auto result =
      fourfold::harness::run_child({python, script.string(), scratch.path().string()});
  INFO(result.output);
  CHECK(result.exit_code == 0);
}
