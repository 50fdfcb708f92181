// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "captured_log.hpp"
#include "save/save_attempt.hpp"
#include "save/step_commit.hpp"
#include "scratch_folder.hpp"
#include "step/checkpoint_read.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/retention.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

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

TEST_CASE("losses of other validation data than the newest one's are not compared", "[retention]") {
  const std::vector<KnownStep> changed = {{10, 1.0, "easy"}, {20, 1.5, "easy"}, {30, 7.0, "hard"},
                                          {40, 6.0, "hard"}, {50, {}, ""},      {60, 8.0, "hard"}};
  CHECK(steps_to_remove(changed, {.keep_last = 1, .keep_best = 1}) == Steps{10, 20, 30, 50});
  CHECK(steps_to_remove(changed, {.keep_last = 1, .keep_best = 9}) == Steps{10, 20, 50});
  // Older versions do not say which data: those count.
  std::vector<KnownStep> older = changed;
  older[0].validation_data = older[1].validation_data = "";
  CHECK(steps_to_remove(older, {.keep_last = 1, .keep_best = 2}) == Steps{30, 40, 50});
}

TEST_CASE("a step that does not fit is told by bytes or by files", "[retention]") {
  CHECK(!io::lack_of_room({100, 4}, {100, 4}));
  CHECK(!io::lack_of_room({100, 4}, {}));
  CHECK(io::lack_of_room({3 << 20, 4}, {1 << 20, 9})->find("3.0 MiB needed, 1.0 MiB free") == 0);
  CHECK(*io::lack_of_room({100, 19}, {100, 18}) ==
        "19 files to be made, room for 18 there (inodes)");
}

TEST_CASE("who loses the lease after a save changes neither LATEST nor older steps",
          "[retention]") {
  const harness::ScratchFolder scratch;
  REQUIRE(try_save(scratch / "from", 2, 10).codes == std::vector{0, 0});
  for (const std::int64_t step : {4, 6}) {
    REQUIRE(try_save(scratch / "c", 2, step).codes == std::vector{0, 0});
  }
  harness::write_bytes(scratch / "c" / "LATEST", "another's");
  const std::filesystem::path made = scratch / "from" / "step-000000010";
  const io::Inspection whole = io::inspect(made);
  const int asked_before = GENERATE(0, 1, 2, 3);  // it is lost
  int asked = 0;
  const auto ask = [&] {
    if (asked++ >= asked_before) {  // and stays so
      throw UserError(ExitCode::cannot_write, "lost");
    }
  };
  const harness::CapturedLog log;
  bool is_refused = false;
  {
    io::TemporaryStep folder(scratch / "c", 10, {});
    for (const auto& entry : std::filesystem::directory_iterator(made)) {
      if (entry.path().filename().string().starts_with("shard-")) {
        std::filesystem::copy(entry.path(), folder.path() / entry.path().filename());
      }
    }
    try {
      publish_sealed(folder, scratch / "c",
                     {whole.contents->manifest, whole.index_bytes, whole.manifest_text},
                     {.keep_last = 1}, ask);
    } catch (const UserError&) {
      is_refused = true;
    }
  }
  CHECK(is_refused == (asked_before == 0));
  const Steps steps = io::list_steps(scratch / "c");
  CHECK(steps == (asked_before == 0   ? Steps{4, 6}
                  : asked_before == 3 ? Steps{6, 10}
                                      : Steps{4, 6, 10}));
  CHECK((harness::read_bytes(scratch / "c" / "LATEST") == "another's") == (asked_before <= 1));
  CHECK(names(scratch / "c").size() == steps.size() + 1);  // and LATEST
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
  const auto best = [&] {
    const auto step = io::best_step(scratch / "c");
    return step ? step->filename().string() : "none";
  };
  CHECK(save(10, "2.5") == Steps{10});
  CHECK(best() == "step-000000010");
  CHECK(save(20, "nan") == Steps{10, 20});
  CHECK(best() == "step-000000010");
  CHECK(save(30, "3.5") == Steps{10, 30});
  CHECK(save(40, "") == Steps{10, 40});
  CHECK(best() == "step-000000010");
  CHECK(save(50, "2.25") == Steps{40, 50});
  CHECK(save(60, "1e-3 or so") == Steps{40, 50, 60});
  CHECK(best() == "step-000000050");
  CHECK(names(scratch / "c").size() == 4);  // and LATEST
}
