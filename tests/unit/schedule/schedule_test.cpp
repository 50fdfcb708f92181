// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/schedule_generators.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <string>
#include <vector>

namespace fourfold::schedule {
namespace {

/// A rank's list with slots: "F0/0, send activation 0/0".
std::string text(const Schedule& schedule, int rank) {
  std::string all;
  for (const Action& action : schedule.ranks[rank]) {
    all += (all.empty() ? "" : ", ") + str(action, schedule.chunks) + "/" +
           std::to_string(action.slot);
  }
  return all;
}

TEST_CASE("virtual stages lie in a loop or a V, and neighbours are found", "[schedule]") {
  Schedule loop{
      .name = "", .stages = 4, .micro_batches = 1, .chunks = 3, .placement = {}, .ranks = {}};
  CHECK(loop.virtual_stage(1, 2) == 9);
  CHECK(loop.place_of_stage(9) == ChunkPlace{1, 2});
  CHECK(loop.previous(0, 1) == ChunkPlace{3, 0});
  CHECK(loop.next(3, 1) == ChunkPlace{0, 2});
  CHECK_FALSE(loop.previous(0, 0));
  CHECK_FALSE(loop.next(3, 2));

  Schedule vee = loop;
  vee.chunks = 2;
  vee.placement = Placement::vee;
  CHECK(vee.virtual_stage(0, 1) == 7);
  CHECK(vee.place_of_stage(7) == ChunkPlace{0, 1});
  CHECK(vee.next(3, 0) == ChunkPlace{3, 1});
  CHECK_FALSE(vee.next_peer(3, 0));
  CHECK_FALSE(vee.previous_peer(3, 1));
  CHECK(vee.next_peer(3, 1) == ChunkPlace{2, 1});
  CHECK(vee.previous(2, 1) == ChunkPlace{3, 1});
  CHECK_FALSE(vee.next(0, 1));
  for (const Schedule& schedule : {loop, vee}) {
    for (int stage = 0; stage < schedule.virtual_stages(); ++stage) {
      const ChunkPlace place = schedule.place_of_stage(stage);
      CHECK(schedule.virtual_stage(place.rank, place.chunk) == stage);
    }
  }
}

TEST_CASE("kinds and actions have names", "[schedule]") {
  CHECK(is_compute(ActionKind::backward_weight));
  CHECK_FALSE(is_compute(ActionKind::send_activation));
  CHECK(is_send(ActionKind::send_gradient));
  CHECK_FALSE(is_send(ActionKind::receive_activation));
  CHECK(str({ActionKind::backward_input, 7, 1, 0}, 2) == "I7.1");
  CHECK(str({ActionKind::receive_gradient, 7, 0, 0}, 1) == "receive gradient 7");
  CHECK(name(Placement::vee) == "vee");
}

TEST_CASE("lowering adds slots, sends after what makes them, and receives one action ahead",
          "[schedule]") {
  const Schedule schedule = make_schedule({.name = "1f1b", .stages = 2, .micro_batches = 3});
  CHECK(text(schedule, 0) ==
        "F0/0, send activation 0/0, receive gradient 0/0, F1/1, send activation 1/1, B0/0, "
        "receive gradient 1/1, F2/0, send activation 2/0, receive gradient 2/0, B1/1, B2/0");
  // Its only slot is in use until each backward, so nothing can be received ahead.
  CHECK(text(schedule, 1) ==
        "receive activation 0/0, F0/0, B0/0, send gradient 0/0, receive activation 1/0, F1/0, "
        "B1/0, send gradient 1/0, receive activation 2/0, F2/0, B2/0, send gradient 2/0");
  CHECK(schedule.slots(0, 0) == 2);
  CHECK(schedule.slots(1, 0) == 1);
  CHECK(schedule.peak_live(0) == 2);
}

TEST_CASE("chunks that meet on a rank send each other nothing", "[schedule]") {
  const Schedule vee = make_schedule({.name = "zb-v", .stages = 1, .micro_batches = 2});
  CHECK(text(vee, 0) ==
        "F0.0/0, F0.1/0, I0.1/0, W0.1/0, I0.0/0, W0.0/0, F1.0/0, F1.1/0, I1.1/0, W1.1/0, "
        "I1.0/0, W1.0/0");
  const Schedule loop =
      make_schedule({.name = "interleaved", .stages = 1, .micro_batches = 3, .chunks = 3});
  CHECK(without_transfers(loop) == loop);
}

TEST_CASE("lowering keeps the compute actions", "[schedule]") {
  for (const std::string& schedule_name : schedule_names()) {
    CAPTURE(schedule_name);
    const Schedule schedule =
        make_schedule({.name = schedule_name, .stages = 4, .micro_batches = 9});
    const Schedule compute = without_transfers(schedule);
    CHECK(lowered(compute) == schedule);
    CHECK(schedule.splits_backward() == schedule_name.starts_with("zb"));
    std::size_t transfers = 0;
    for (std::size_t rank = 0; rank < 4; ++rank) {
      transfers += schedule.ranks[rank].size() - compute.ranks[rank].size();
    }
    // A send and a receive of both an activation and a gradient at every border between ranks.
    const std::size_t borders = schedule.placement == Placement::vee ? 6
                                : schedule.chunks == 2               ? 7
                                                                     : 3;
    CHECK(transfers == 4 * borders * 9);
  }
}

}  // namespace
}  // namespace fourfold::schedule
