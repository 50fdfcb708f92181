// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/shape.hpp>

#include <catch2/catch_test_macros.hpp>

#include <vector>

using fourfold::Shape;

TEST_CASE("a shape multiplies its dims; none make a scalar", "[shape]") {
  CHECK(Shape{}.elements() == 1);
  CHECK(Shape{7}.elements() == 7);
  CHECK(Shape{3, 0, 5}.elements() == 0);
  CHECK(Shape{50257, 768, 4096, 3}.elements() == 474'284'556'288);
  CHECK(Shape{768, 3072}.str() == "[768, 3072]");
  CHECK(Shape{}.str() == "[]");
}

TEST_CASE("shapes are equal when rank and dims are", "[shape]") {
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK_FALSE(Shape{2, 3} == Shape{3, 2});
  CHECK_FALSE(Shape{2, 3} == Shape{2, 3, 1});
  CHECK(Shape::filled(3, 4) == Shape{4, 4, 4});
}

#if FOURFOLD_CONTRACTS
TEST_CASE("a dim that is not there and a ninth dim are contract violations", "[shape]") {
  const Shape shape{2, 3};
  CHECK_THROWS_AS(shape[2], fourfold::ContractViolation);
  const std::vector<std::int64_t> nine(9, 1);
  CHECK_THROWS_AS(Shape(nine), fourfold::ContractViolation);
}
#endif
