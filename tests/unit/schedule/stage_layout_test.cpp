// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "whole_model.hpp"

#include <fourfold/model/presets.hpp>
#include <fourfold/schedule/schedule_generators.hpp>
#include <fourfold/schedule/split_layers.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace fourfold;
using schedule::StageLayout;

namespace {

/// Six layers: units 0 (embedding), 1..6, 7 (head).
StageLayout layout(const std::string& schedule, int stages, int chunks,
                   std::vector<std::int64_t> layers) {
  model::Architecture config = model::preset("gpt2-124m");
  config.layers = 6;
  const auto made = schedule::make_schedule(
      {.name = schedule, .stages = stages, .micro_batches = 8, .chunks = chunks});
  return {made,
          schedule::split_layers(
              config, {.stages = stages, .chunks = made.chunks, .stage_layers = std::move(layers)}),
          true};
}

model::ParameterSpec spec(model::ParameterKind kind, int unit) {
  model::ParameterSpec result;
  result.kind = kind;
  result.unit = unit;
  return result;
}
model::ParameterSpec token_embedding() {
  model::ParameterSpec result = spec(model::ParameterKind::embedding, 0);
  result.cut = {model::TensorCut::Unit::vocabulary_row, 0, 64};
  return result;
}

}  // namespace

TEST_CASE("a loop deals units to ranks in turn", "[stage_layout]") {
  const StageLayout loop = layout("interleaved", 2, 2, {2, 2, 1, 1});
  CHECK(loop.chunks_of(0) == std::vector<model::UnitRange>{{0, 3}, {5, 6}});
  CHECK(loop.chunks_of(1) == std::vector<model::UnitRange>{{3, 5}, {6, 8}});
  CHECK(loop.rank_of_unit(0) == 0);
  CHECK(loop.rank_of_unit(4) == 1);
  CHECK(loop.rank_of_unit(5) == 0);
  CHECK(loop.rank_of_unit(7) == 1);
  // The later chunk ends first.
  CHECK(loop.finishing_units(0) == std::vector<int>{5, 2, 1, 0});
  CHECK(loop.finishing_units(1) == std::vector<int>{7, 6, 4, 3});
}

TEST_CASE("a tied embedding is held where it is looked up and where the head is",
          "[stage_layout]") {
  const StageLayout line = layout("1f1b", 3, 1, {2, 2, 2});
  CHECK(line.holders(token_embedding()) == std::vector<int>{0, 2});
  CHECK(line.holders(spec(model::ParameterKind::embedding, 0)) == std::vector<int>{0});
  CHECK(line.holders(spec(model::ParameterKind::vector, 7)) == std::vector<int>{2});
  const StageLayout vee = layout("zb-v", 2, 2, {2, 2, 1, 1});
  CHECK(vee.holders(token_embedding()) == std::vector<int>{0});
  StageLayout untied = line;
  untied.tied = false;
  CHECK(untied.holders(token_embedding()) == std::vector<int>{0});
}

TEST_CASE("a tied embedding on one rank with the head ends with whichever is later",
          "[stage_layout]") {
  StageLayout vee = layout("zb-v", 2, 2, {2, 2, 1, 1});
  const std::vector<int> order = vee.finishing_units(0);
  const auto at = [&](int unit) { return std::find(order.begin(), order.end(), unit); };
  CHECK(order.size() == 5);  // 0, 1, 2 and 6, 7
  CHECK(at(7) < at(0));
  CHECK(at(2) < at(1));
  // Where chunk 0 ends first, its other units do not wait for the head.
  vee.schedule.ranks[0].push_back({schedule::ActionKind::backward_weight, 0, 1, 0});
  CHECK(vee.finishing_units(0) == std::vector<int>{2, 1, 7, 0, 6});
  vee.tied = false;
  CHECK(vee.finishing_units(0) == std::vector<int>{2, 1, 0, 7, 6});
}

TEST_CASE("a whole model is one stage", "[stage_layout]") {
  model::Architecture config = model::preset("gpt2-124m");
  const StageLayout whole = schedule::whole_model(config, 3);
  CHECK(whole.chunks_of(0) == std::vector<model::UnitRange>{{0, 14}});
  CHECK(whole.schedule.micro_batches == 3);
  CHECK(whole.finishing_units(0).front() == 13);
  CHECK(whole.finishing_units(0).back() == 0);
}
