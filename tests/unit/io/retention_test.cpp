// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "save_attempt.hpp"
#include "scratch_folder.hpp"
#include "step/step_folder.hpp"

#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/retention.hpp>

#include <catch2/catch_test_macros.hpp>

#include <filesystem>
#include <fstream>

using namespace fourfold;
using namespace fourfold::io_test;
using io::KnownStep;
using io::steps_to_remove;
using Steps = std::vector<std::int64_t>;

namespace {

const std::vector<KnownStep> six = {{10, 3.0}, {20, 1.0}, {30, {}},
                                    {40, 1.0}, {50, 2.0}, {60, 4.0}};

}  // namespace

TEST_CASE("steps are kept for being new, multiples or best, together", "[retention]") {
  CHECK(steps_to_remove(six, {}).empty());
  CHECK(steps_to_remove(six, {.keep_last = 2}) == Steps{10, 20, 30, 40});
  CHECK(steps_to_remove(six, {.keep_last = 6}).empty());
  CHECK(steps_to_remove(six, {.keep_last = 7}).empty());
  CHECK(steps_to_remove(six, {.keep_last = 1, .keep_every_steps = 20}) == Steps{10, 30, 50});
  CHECK(steps_to_remove(six, {.keep_last = 1, .keep_best = 1}) == Steps{10, 20, 30, 50});
  CHECK(steps_to_remove(six, {.keep_last = 1, .keep_best = 2}) == Steps{10, 30, 50});
  CHECK(steps_to_remove(six, {.keep_last = 1, .keep_best = 9}) == Steps{30});
  CHECK(steps_to_remove(six, {.keep_last = 1, .keep_every_steps = 30, .keep_best = 1}) ==
        Steps{10, 20, 50});
  CHECK(steps_to_remove(six, {.keep_last = 0, .keep_every_steps = 20, .keep_best = 1}).empty());
  CHECK(steps_to_remove({}, {.keep_last = 1}).empty());
}

TEST_CASE("a step that does not fit is told by bytes or by files", "[retention]") {
  CHECK(!io::lack_of_room({100, 4}, {100, 4}));
  CHECK(!io::lack_of_room({100, 4}, {}));
  CHECK(io::lack_of_room({3 << 20, 4}, {1 << 20, 9})->find("3.0 MiB needed, 1.0 MiB free") == 0);
  CHECK(*io::lack_of_room({100, 19}, {100, 18}) ==
        "19 files to be made, room for 18 there (inodes)");
}

TEST_CASE("a save removes what retention lets go, by the losses that steps note", "[retention]") {
  const harness::ScratchFolder scratch;
  const auto save = [&](std::int64_t step, const std::string& loss) {
    io::CheckpointScalars scalars = some_scalars(step);
    if (!loss.empty()) {
      scalars.texts[io::validation_loss_name] = loss;
    }
    comm::run_ranks(2, [&](comm::Communicator& world) {
      const RankState state(small_model(), all_cuts()[0].cut, world.rank(), 2, true);
      io::CheckpointStore store(
          scratch / "c", {.keep_last = 1, .keep_every_steps = 40, .keep_best = 1, .plan = {}});
      store.save({.step = step,
                  .mesh = {1, 2, 1, 1},
                  .scalars = scalars,
                  .tensors = state.layouts,
                  .pieces = state.pieces},
                 world);
    });
    return io::list_steps(scratch / "c");
  };
  CHECK(save(10, "2.5") == Steps{10});
  CHECK(save(20, "nan") == Steps{10, 20});
  CHECK(save(30, "3.5") == Steps{10, 30});
  CHECK(save(40, "") == Steps{10, 40});
  CHECK(save(50, "2.25") == Steps{40, 50});
  CHECK(save(60, "1e-3 or so") == Steps{40, 50, 60});
  CHECK(names(scratch / "c").size() == 4);  // and LATEST
}
