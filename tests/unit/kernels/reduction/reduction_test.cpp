// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/tensors.hpp"

#include <fourfold/kernels/reduction.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>

namespace {

using namespace fourfold;
using namespace fourfold::kernels;
using namespace fourfold::kernels::test;

TEST_CASE("sum adds in f64, blocks in a fixed order", "[reduction]") {
  constexpr std::int64_t block = 65536;
  constexpr std::int64_t elements = 3 * block + 77;
  const device::Tensor x = random_tensor(DType::f32, {elements}, 1, 1.0, 0.01);
  device::Tensor whole(DType::f64, {1});
  device::Tensor plain(DType::f64, {1});
  device::Tensor cut(DType::f64, {1});
  sum(x, whole, false, {});
  reference::sum(x, plain, false, {});
  CHECK(std::fabs(*whole.as<double>() - *plain.as<double>()) <= 1e-9);
  for (std::int64_t first = 0; first < elements; first += block) {
    sum(x.view().rows(first, std::min(block, elements - first)), cut, true, {});
  }
  CHECK(same_bits(whole, cut));
  sum(x, whole, true, {});
  CHECK(*whole.as<double>() == 2 * *cut.as<double>());
}

TEST_CASE("sum_of_squares equals a plain sum in double", "[reduction]") {
  for (const std::int64_t elements : {0, 1, 31, 32, 33, 65535, 65536, 65537, 200003}) {
    CAPTURE(elements);
    const device::Tensor x = random_tensor(DType::f32, {elements}, 1, 1e20);
    device::Tensor fast(DType::f64, {1});
    device::Tensor plain(DType::f64, {1});
    sum_of_squares(x, fast, false, {});
    reference::sum_of_squares(x, plain, false, {});
    CHECK(std::fabs(*fast.as<double>() - *plain.as<double>()) <= 1e-13 * *plain.as<double>());
    const double once = *fast.as<double>();
    sum_of_squares(x, fast, true, {});
    CHECK(*fast.as<double>() == 2 * once);
  }
}

TEST_CASE("sums of many blocks, wherever they begin, equal plain ones", "[reduction]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  constexpr std::int64_t elements = 18 * 65536 + 13;
  CAPTURE(name(dtype));
  const device::Tensor x = random_tensor(dtype, {elements}, 1);
  const Shifted shifted(x);
  device::Tensor result(DType::f64, {1});
  device::Tensor other(DType::f64, {1});
  long double plain[2] = {0, 0};  // a plain sum of so many is no better in double
  for (std::int64_t i = 0; i < elements; ++i) {
    const long double value = read_element(x, i);
    plain[0] += value;
    plain[1] += value * value;
  }
  sum(x, result, false, {});
  sum(shifted, other, false, {});
  CHECK(std::fabs(*result.as<double>() - static_cast<double>(plain[0])) <= 1e-8);
  CHECK(same_bits(result, other));
  sum_of_squares(x, result, false, {});
  sum_of_squares(shifted, other, false, {});
  CHECK(std::fabs(*result.as<double>() / static_cast<double>(plain[1]) - 1) <= 1e-13);
  CHECK(same_bits(result, other));
}

TEST_CASE("sum_of_squares adds fixed blocks in a fixed order", "[reduction]") {
  constexpr std::int64_t block = 65536;
  const device::Tensor x = random_tensor(DType::f32, {200003}, 1);
  device::Tensor whole(DType::f64, {1});
  device::Tensor cut(DType::f64, {1});
  sum_of_squares(x, whole, false, {});
  for (std::int64_t first = 0; first < 200003; first += block) {
    sum_of_squares(x.view().rows(first, std::min(block, 200003 - first)), cut, true, {});
  }
  CHECK(same_bits(whole, cut));
}

}  // namespace
