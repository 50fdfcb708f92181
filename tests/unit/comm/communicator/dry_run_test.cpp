// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/comm/communicator.hpp>

#include <catch2/catch_test_macros.hpp>

#include <vector>

namespace fourfold::comm {
namespace {

TEST_CASE("a dry run puts the own part where it belongs and leaves the rest", "[dry_run]") {
  const auto world = make_dry_run(1, 3);
  CHECK(world->rank() == 1);
  CHECK(world->size() == 3);
  const std::vector<std::int64_t> counts{2, 1, 2};
  const std::vector<float> own{7};
  std::vector<float> all{1, 2, 3, 4, 5};
  world->all_gather({own.data(), {1}}, {all.data(), {5}}, counts, {}).wait({});
  CHECK(all == std::vector<float>{1, 2, 7, 4, 5});
  std::vector<float> part{0};
  world->reduce_scatter({all.data(), {5}}, {part.data(), {1}}, counts, ReduceOp::sum, {}).wait({});
  CHECK(part[0] == 7);
  world->all_reduce({all.data(), {5}}, ReduceOp::sum, {}).wait({});
  CHECK(all == std::vector<float>{1, 2, 7, 4, 5});
  CHECK(all_gather_text(*world, "me") == std::vector<std::string>{"", "me", ""});
  world->all_gather({nullptr, DType::f32, {1}}, {nullptr, DType::f32, {5}}, counts, {}).wait({});
}

TEST_CASE("a dry run makes groups whose members are known, and says why it cannot split",
          "[dry_run]") {
  const auto world = make_dry_run(5, 8);
  const std::vector<int> members{1, 5, 7};
  const auto group = world->subgroup(members, "odd");
  CHECK(group->rank() == 1);
  CHECK(group->size() == 3);
  CHECK(group->name() == "odd");
  CHECK_THROWS_AS(world->split(0, 0, "x"), UserError);
}

TEST_CASE("a dry run of one rank is an exact communicator", "[dry_run]") {
  const auto alone = make_dry_run(0, 1);
  const std::vector<std::int64_t> counts{3};
  const std::vector<float> values{1, 2, 3};
  std::vector<float> result(3);
  alone->all_to_all({values.data(), {3}}, counts, {result.data(), {3}}, counts, {}).wait({});
  CHECK(result == values);
  CHECK(all_reduce_scalar(*alone, 4.5, ReduceOp::avg) == 4.5);
  CHECK(alone->split(3, 9, "self")->size() == 1);
}

}  // namespace
}  // namespace fourfold::comm
