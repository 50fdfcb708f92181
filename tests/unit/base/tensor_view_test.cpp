// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/tensor_view.hpp>

#include <catch2/catch_test_macros.hpp>

#include <numeric>
#include <vector>

using fourfold::ConstTensorView;
using fourfold::DType;
using fourfold::TensorView;

TEST_CASE("a view knows its dims, elements and bytes", "[tensor_view]") {
  std::vector<float> numbers(15);
  const TensorView x(numbers.data(), {5, 3});
  CHECK(x.dtype() == DType::f32);
  CHECK(x.dim(1) == 3);
  CHECK(x.elements() == 15);
  CHECK(x.bytes() == 60);
  CHECK(x.as<float>() == numbers.data());
  CHECK(static_cast<bool>(x));
  CHECK_FALSE(static_cast<bool>(TensorView()));
}

TEST_CASE("rows are a window on the slowest dim, of the same memory", "[tensor_view]") {
  std::vector<float> numbers(5 * 3 * 2);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  const TensorView x(numbers.data(), {5, 3, 2});
  const TensorView window = x.rows(2, 2);
  CHECK(window.shape() == fourfold::Shape{2, 3, 2});
  CHECK(window.as<float>()[0] == 12.0F);
  window.as<float>()[1] = -1.0F;
  CHECK(numbers[13] == -1.0F);
  CHECK(x.rows(5, 0).elements() == 0);
  CHECK(ConstTensorView(x).rows(4, 1).as<float>()[5] == 29.0F);
}

TEST_CASE("another shape shows the same elements", "[tensor_view]") {
  std::vector<float> numbers(12);
  const TensorView x(numbers.data(), {4, 3});
  CHECK(x.reshape({2, 6}).data() == x.data());
  CHECK(x.reshape({2, 6}).dim(1) == 6);
}

#if FOURFOLD_CONTRACTS
TEST_CASE("wrong types, windows and shapes are contract violations", "[tensor_view]") {
  std::vector<float> numbers(12);
  const TensorView x(numbers.data(), {4, 3});
  CHECK_THROWS_AS(x.as<std::int32_t>(), fourfold::ContractViolation);
  CHECK_THROWS_AS(x.rows(3, 2), fourfold::ContractViolation);
  CHECK_THROWS_AS(x.rows(-1, 1), fourfold::ContractViolation);
  CHECK_THROWS_AS(x.reshape({5, 3}), fourfold::ContractViolation);
}
#endif
