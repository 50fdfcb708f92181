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
  const auto add = [](EventFile& file, int from, int to, float start) {
    for (int step = from; step <= to; ++step) {
      const std::array scalars{EventScalar{"train/loss", start - static_cast<float>(step)}};
      file.add(step, 1700000000 + step, scalars);
    }
  };
  {
    EventFile killed(scratch.path(), 0, 1700000000);
    add(killed, 1, 9, 100);
    EventFile begun_again(scratch.path(), 0, 1700000000);  // in the same second, without a save
    add(begun_again, 1, 6, 10);
    EventFile resumed(scratch.path(), 4, 1690000000);  // on a host whose clock is behind
    add(resumed, 4, 4, 5.25F);
  }
  const std::filesystem::path script = scratch.write(
      "read.py",
      "import sys\n"
      "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
      "from tensorboard.backend.event_processing import plugin_event_multiplexer\n"
      "events = EventAccumulator(sys.argv[1])\n"
      "events.Reload()\n"
      "got = [(e.step, e.value) for e in events.Scalars('train/loss')]\n"
      "assert got == [(1, 9.0), (2, 8.0), (3, 7.0), (4, 1.25)], got\n"
      "runs = plugin_event_multiplexer.EventMultiplexer().AddRun(sys.argv[1], 'r')\n"
      "runs.Reload()\n"
      "steps = [e.step for e in runs.Tensors('r', 'train/loss')]\n"
      "assert steps == [1, 2, 3, 4], steps\n");
  const auto result =
      fourfold::harness::run_child({python, script.string(), scratch.path().string()});
  INFO(result.output);
  CHECK(result.exit_code == 0);
}
