// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verify/logical_values.hpp"

#include "shared_arena.hpp"

#include <fourfold/device/arena.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <array>
#include <cmath>
#include <vector>

using namespace fourfold;
using Catch::Matchers::ContainsSubstring;
using train::LogicalValues;

namespace {

const std::vector<model::ParameterSpec> table{{.name = "weight", .shape = {2, 3}, .decay = true}};

/// What a rank holds of the tensor: element (i, j) is 10 i + j.
model::Parameters part(const Box& box, device::Arena& arena, float error = 0) {
  const std::array boxes{box};
  model::Parameters parameters(table, boxes, DType::f32, arena);
  float* value = parameters.at("weight").master.as<float>();
  for (std::int64_t i = 0; i < box.extent[0]; ++i) {
    for (std::int64_t j = 0; j < box.extent[1]; ++j) {
      *value++ = static_cast<float>(10 * (box.offset[0] + i) + box.offset[1] + j) + error;
    }
  }
  return parameters;
}

void add(LogicalValues& values, const model::Parameters& parameters, int rank) {
  values.add(parallel::ParameterShard(parameters), &parallel::ParameterShard::Piece::master, rank,
             {});
}

}  // namespace

TEST_CASE("parts of ranks make whole tensors", "[logical_values]") {
  fourfold::harness::SharedArena arena;
  LogicalValues values(table, "weight");
  add(values, part({{0, 0}, {2, 2}}, arena), 0);
  add(values, part({{0, 1}, {2, 2}}, arena), 1);
  std::vector<std::string> disagreements;
  CHECK(values.take(disagreements) == train::ParameterValues{{0, 1, 2, 10, 11, 12}});
  CHECK(disagreements.empty());
}

TEST_CASE("replicas with other bits and elements that nobody holds are told of",
          "[logical_values]") {
  fourfold::harness::SharedArena arena;
  LogicalValues values(table, "gradient");
  add(values, part({{0, 0}, {2, 2}}, arena), 4);
  add(values, part({{1, 0}, {1, 2}}, arena, 0.5F), 2);
  std::vector<std::string> disagreements;
  const train::ParameterValues tensors = values.take(disagreements);
  CHECK(tensors[0][3] == 10);
  CHECK(std::isnan(tensors[0][2]));
  REQUIRE(disagreements.size() == 2);
  CHECK(disagreements[0] == "ranks 2 and 4 hold different bits of the gradient of weight");
  CHECK(disagreements[1] == "no rank holds 2 elements of the gradient of weight");
}

TEST_CASE("parts of whole tensors come back to the ranks that hold them", "[logical_values]") {
  fourfold::harness::SharedArena arena;
  const model::Parameters left = part({{0, 0}, {2, 2}}, arena);
  const model::Parameters lower_right = part({{1, 1}, {1, 2}}, arena);
  for (const model::Parameters* const parameters : {&left, &lower_right}) {
    train::put_masters({{5, 6, 7, 8, 9, 10}}, table, parallel::ParameterShard(*parameters), {});
  }
  const float* const of_left = left.at("weight").master.as<float>();
  CHECK(std::vector<float>(of_left, of_left + 4) == std::vector<float>{5, 6, 8, 9});
  const float* const of_right = lower_right.at("weight").master.as<float>();
  CHECK(std::vector<float>(of_right, of_right + 2) == std::vector<float>{9, 10});
}
