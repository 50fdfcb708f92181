// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/io/checkpoint_plan.hpp>
#include <fourfold/io/tensor_state.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace fourfold;
using namespace fourfold::io;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

std::vector<int> ranks_of(const RankSet& set) {
  std::vector<int> ranks;
  for (int index = 0; index < set.size(); ++index) {
    ranks.push_back(set[index]);
  }
  return ranks;
}

std::vector<TensorLayout> replicated_model(int ranks) {
  std::vector<TensorLayout> layouts;
  for (const TensorState state :
       {TensorState::master, TensorState("exp_avg"), TensorState("exp_avg_sq")}) {
    layouts.push_back(
        TensorLayout::replicated({"embed.weight", state}, DType::f32, {97, 33}, ranks));
    layouts.push_back(TensorLayout::replicated({"norm.weight", state}, DType::f32, {33}, ranks));
    layouts.push_back(TensorLayout::replicated({"scale", state}, DType::f32, {}, ranks));
    layouts.push_back(TensorLayout::replicated({"wide", state}, DType::bf16, {1, 5, 64}, ranks));
    layouts.push_back(TensorLayout::replicated({"none", state}, DType::f32, {0, 7}, ranks));
  }
  return layouts;
}

}  // namespace

TEST_CASE("rank sets are what a mesh makes of equal coordinates") {
  CHECK(ranks_of(RankSet::single(5)) == std::vector{5});
  CHECK(ranks_of(RankSet::all(4)) == std::vector{0, 1, 2, 3});
  const std::array axes{RankSet::Axis{2, 24},
                        RankSet::Axis{3, 2}};  // first and last stage, dp, tp 1
  const RankSet set(1, axes);
  CHECK(ranks_of(set) == std::vector{1, 3, 5, 25, 27, 29});
  int members = 0;
  for (int rank = -5; rank < 60; ++rank) {
    members += set.contains(rank) ? 1 : 0;
  }
  CHECK(members == 6);
  CHECK(set.contains(27));
  CHECK_FALSE(set.contains(7));
  CHECK_FALSE(RankSet::single(0).contains(1));
}

TEST_CASE("a plan covers every tensor once, by holders, and balances bytes") {
  const int ranks = GENERATE_COPY(1, 2, 3, 8);
  const std::vector<TensorLayout> layouts = replicated_model(ranks);
  const SavePlan plan = plan_save(layouts, ranks, {.smallest_part_bytes = 256});
  std::vector<std::vector<Box>> boxes(layouts.size());
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks), 0);
  for (const PlannedExtent& extent : plan.extents) {
    REQUIRE(extent.writer >= 0);
    REQUIRE(extent.writer < ranks);
    CHECK_FALSE(extent.box.empty());
    boxes[extent.tensor].push_back(extent.box);
    bytes[static_cast<std::size_t>(extent.writer)] +=
        extent.box.elements() *
        static_cast<std::int64_t>(size_in_bytes(layouts[extent.tensor].dtype));
  }
  for (std::size_t tensor = 0; tensor < layouts.size(); ++tensor) {
    CHECK(cover_defect(layouts[tensor].shape, boxes[tensor]) == std::nullopt);
  }
  CHECK(plan.bytes_of_rank == bytes);
  const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
  CHECK(*most - *least <= 2 * 33 * 4 * 97 / ranks + 512);
}

TEST_CASE("shards are written by their holders, replicas of shards by one of them") {
  // tp 2 x dp 2: ranks 0, 2 hold the upper half and 1, 3 the lower one.
  const RankSet::Axis dp{2, 2};
  const TensorLayout layout{
      {"w", TensorState::master},
      DType::f32,
      {8, 4},
      {{{{0, 0}, {4, 4}}, RankSet(0, {&dp, 1})}, {{{4, 0}, {4, 4}}, RankSet(1, {&dp, 1})}}};
  const SavePlan plan = plan_save({&layout, 1}, 4, {.smallest_part_bytes = 16});
  REQUIRE(plan.extents.size() == 4);
  for (const PlannedExtent& extent : plan.extents) {
    CHECK(layout.boxes[extent.held_box].holders.contains(extent.writer));
    CHECK(contains(layout.boxes[extent.held_box].box, extent.box));
  }
  CHECK(plan.bytes_of_rank == std::vector<std::int64_t>{32, 32, 32, 32});
}

TEST_CASE("thousands of holders share evenly, the lowest rank first among equals") {
  constexpr int ranks = 16384;
  constexpr int half = ranks / 2;
  const std::vector<TensorLayout> layouts = {
      TensorLayout::replicated({"small"}, DType::f32, {ranks, 4}, ranks),
      TensorLayout::replicated({"large"}, DType::f32, {half, 16}, ranks)};
  const SavePlan plan = plan_save(layouts, ranks, {.smallest_part_bytes = 16});
  REQUIRE(plan.extents.size() == static_cast<std::size_t>(ranks + half));
  // The rows of 64 bytes come first, to the lower half; then the upper half takes those of 16
  // bytes, twice.
  std::int64_t wrong = 0;
  for (int row = 0; row < ranks; ++row) {
    const PlannedExtent& extent = plan.extents[static_cast<std::size_t>(row)];
    wrong += extent.box == Box{{row, 0}, {1, 4}} && extent.writer == half + row % half ? 0 : 1;
  }
  for (int row = 0; row < half; ++row) {
    const PlannedExtent& extent = plan.extents[static_cast<std::size_t>(ranks + row)];
    wrong += extent.box == Box{{row, 0}, {1, 16}} && extent.writer == row ? 0 : 1;
  }
  for (int rank = 0; rank < ranks; ++rank) {
    wrong += plan.bytes_of_rank[static_cast<std::size_t>(rank)] == (rank < half ? 64 : 32) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("writers are those that a scan of all holders finds, also where sets overlap") {
  constexpr int ranks = 24;
  const RankSet::Axis pairs{12, 2};
  const RankSet::Axis thirds{8, 3};
  const std::vector<RankSet> sets = {RankSet::all(ranks),        RankSet(0, {&pairs, 1}),
                                     RankSet(1, {&pairs, 1}),    RankSet(2, {&thirds, 1}),
                                     RankSet::single(ranks - 1), RankSet::single(2)};
  std::vector<TensorLayout> layouts;
  std::uint64_t random = 1;
  for (int tensor = 0; tensor < 300; ++tensor) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const auto rows = static_cast<std::int64_t>(random >> 58) + 1;
    const RankSet& holders = sets[(random >> 40) % sets.size()];
    layouts.push_back({{"t" + std::to_string(tensor)},
                       DType::f32,
                       {rows, 3},
                       {{Box::whole({rows, 3}), holders}}});
  }
  const SavePlan plan = plan_save(layouts, ranks, {.smallest_part_bytes = 48});
  const auto bytes_of = [](const PlannedExtent& extent) { return extent.box.elements() * 4; };
  std::vector<const PlannedExtent*> order;
  for (const PlannedExtent& extent : plan.extents) {
    order.push_back(&extent);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* a, const auto* b) { return bytes_of(*a) > bytes_of(*b); });
  std::vector<std::int64_t> bytes(ranks, 0);
  for (const PlannedExtent* extent : order) {
    const std::vector<int> holders = ranks_of(layouts[extent->tensor].boxes[0].holders);
    const int least = *std::min_element(holders.begin(), holders.end(), [&](int a, int b) {
      return bytes[static_cast<std::size_t>(a)] < bytes[static_cast<std::size_t>(b)];
    });
    REQUIRE(extent->writer == least);
    bytes[static_cast<std::size_t>(least)] += bytes_of(*extent);
  }
  CHECK(plan.bytes_of_rank == bytes);
}

TEST_CASE("small boxes are not cut, and a plan does not depend on anything but its input") {
  const std::vector<TensorLayout> layouts = replicated_model(4);
  CHECK(plan_save(layouts, 4).extents.size() == 12);  // 3 states x 4 tensors with elements
  CHECK(plan_fingerprint(layouts, 4) == plan_fingerprint(replicated_model(4), 4));
  CHECK(plan_fingerprint(layouts, 4) != plan_fingerprint(replicated_model(3), 3));
  CHECK(model_fingerprint(layouts) == model_fingerprint(replicated_model(3)));
  std::vector<TensorLayout> other = replicated_model(4);
  std::swap(other[0], other[5]);
  CHECK(model_fingerprint(other) == model_fingerprint(layouts));
  other[0].dtype = DType::bf16;
  CHECK(model_fingerprint(other) != model_fingerprint(layouts));
}

TEST_CASE("layouts that are not whole are refused by name") {
  const auto message = [](TensorLayout layout) {
    return [layout] { (void)plan_save({&layout, 1}, 2); };
  };
  const TensorLayout good = TensorLayout::replicated({"w.weight"}, DType::f32, {4, 4}, 2);
  CHECK_NOTHROW(message(good)());
  TensorLayout layout = good;
  layout.boxes[0].box = {{0, 0}, {3, 4}};
  CHECK_THROWS_MATCHES(
      message(layout)(), Error,
      MessageMatches(ContainsSubstring("w.weight/weight has boxes that cover 12 of its 16")));
  layout.boxes.push_back({{{2, 0}, {1, 4}}, RankSet::single(1)});
  CHECK_THROWS_MATCHES(message(layout)(), Error, MessageMatches(ContainsSubstring("overlap")));
  layout = good;
  layout.boxes[0].box = {{1, 0}, {4, 4}};
  CHECK_THROWS_MATCHES(message(layout)(), Error,
                       MessageMatches(ContainsSubstring("outside its shape")));
  layout = good;
  layout.boxes[0].holders = RankSet::all(3);
  CHECK_THROWS_MATCHES(message(layout)(), Error,
                       MessageMatches(ContainsSubstring("ranks outside 0..1")));
  for (const char* name : {"", "..", "a/b", "a b", "../w", "w\n"}) {
    layout = good;
    layout.id.name = name;
    CHECK_THROWS_MATCHES(message(layout)(), Error,
                         MessageMatches(ContainsSubstring("name with other characters")));
  }
  const std::vector<TensorLayout> twice{good, good};
  CHECK_THROWS_MATCHES(plan_save(twice, 2), Error, MessageMatches(ContainsSubstring("twice")));
}

TEST_CASE("names of states go both ways") {
  std::optional<TensorState> before;
  for (const TensorState state :
       {TensorState::weight, TensorState::master, TensorState("exp_avg"), TensorState("exp_avg_sq"),
        TensorState("momentum"), TensorState("error_feedback"), TensorState("outer_momentum")}) {
    CHECK(TensorState::from_name(state.name()) == state);
    CHECK(std::exchange(before, state) < state);  // the order of the first checkpoints
  }
  const TensorState other("Muon_x-9");
  CHECK(TensorState::from_name("Muon_x-9") == other);
  CHECK(before < other);
  CHECK(other < TensorState("a"));
  const std::string longest(TensorState::most_characters, 'x');
  CHECK(TensorState(longest).name() == longest);
  for (const std::string& bad :
       {std::string(), longest + "x", std::string("a/b"), std::string(".."), std::string("a.b"),
        std::string("a\0b", 3), std::string("\xc3\xa4")}) {
    CHECK_FALSE(TensorState::from_name(bad));
  }
}
