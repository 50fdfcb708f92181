// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Sums of products against products written out here in f32, in the orders of summation that
/// libraries use, and rounded to storage.
#include "verify/matmul_sums.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

using namespace fourfold;
using train::HostMatmul;
using train::HostMatrix;

namespace {

constexpr PhiloxKey key{17, 4};
constexpr double tolerance = 8;  // train::Tolerances::product

float rounded(float value, DType stored) {
  return stored == DType::bf16  ? static_cast<float>(BFloat16(value))
         : stored == DType::f16 ? static_cast<float>(Float16(value))
                                : value;
}

/// Row-major numbers.
struct Numbers {
  std::int64_t rows;
  std::int64_t columns;
  std::vector<float> values = std::vector<float>(static_cast<std::size_t>(rows * columns));

  HostMatrix matrix() const { return {values.data(), rows, columns, columns, 1}; }
  float& at(std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
};

Numbers random(std::int64_t rows, std::int64_t columns, std::uint64_t salt, DType stored,
               float mean = 0) {
  Numbers numbers{rows, columns};
  for (std::size_t i = 0; i < numbers.values.size(); ++i) {
    numbers.values[i] = rounded(normal_float(philox_key(salt, RandomUse::test), i) + mean, stored);
  }
  return numbers;
}

/// a b^T + bias, each sum in f32 in `lanes` lanes.
Numbers product_of(Numbers& a, Numbers& b, const std::vector<float>& bias, DType stored,
                   int lanes) {
  Numbers c{a.rows, b.rows};
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j) {
      std::vector<float> sums(static_cast<std::size_t>(lanes));
      for (std::int64_t k = 0; k < a.columns; ++k) {
        sums[static_cast<std::size_t>(k % lanes)] += a.at(i, k) * b.at(j, k);
      }
      float sum = 0;
      for (const float lane : sums) {
        sum += lane;
      }
      c.at(i, j) = rounded(bias.empty() ? sum : sum + bias[static_cast<std::size_t>(j)], stored);
    }
  }
  return c;
}

}  // namespace

TEST_CASE("sums pass what rounding makes of a product, and nothing else", "[matmul_sums]") {
  const DType stored = GENERATE(DType::f32, DType::bf16, DType::f16);
  const float mean = GENERATE(0.0F, 1.0F);  // sums that cancel, and such that do not
  const std::int64_t rows = GENERATE(1, 5, 9, 67);
  Numbers a = random(rows, 131, 1, stored, mean);
  Numbers b = random(13, 131, 2, stored, mean);
  const std::vector<float> bias = random(1, 13, 3, stored).values;
  CAPTURE(name(stored), mean, rows);
  for (const int lanes : {1, 8}) {
    Numbers c = product_of(a, b, bias, stored, lanes);
    HostMatmul product{.a = a.matrix(),
                       .b = b.matrix().transposed(),
                       .c = c.matrix(),
                       .stored = stored,
                       .bias = bias};
    const auto error = [&] { return check_sums(product, key).error; };
    CHECK(error() < tolerance / 2);
    CHECK(error() > 0);

    const Numbers right = c;
    for (std::int64_t i = 0; i < rows; ++i) {
      c.at(i, 7) *= 2;  // a column counts twice
    }
    CHECK(error() > 0.01 / train::roundoff(stored));
    c = right;
    product.c = c.matrix();
    for (std::int64_t j = 0; j < 13; ++j) {
      c.at(rows - 1, j) *= 2;  // a row does
    }
    CHECK(error() > tolerance);
    c = right;
    product.c = c.matrix();
    c.at(rows / 2, 3) += 0.3F * (1 + std::fabs(c.at(rows / 2, 3)));  // one number is wrong
    CHECK(error() > tolerance);
    c = right;
    product.c = c.matrix();
    if (mean == 0) {  // else it is hardly more than rounding in 16 bits
      product.bias = {};
      CHECK(error() > tolerance);
    }
  }
}

TEST_CASE("what was there before belongs to the sum", "[matmul_sums]") {
  Numbers a = random(40, 30, 1, DType::bf16);
  Numbers b = random(11, 30, 2, DType::bf16);
  Numbers before = random(40, 11, 3, DType::f32);
  Numbers c = product_of(a, b, {}, DType::f32, 8);
  for (std::size_t i = 0; i < c.values.size(); ++i) {
    c.values[i] += before.values[i];
  }
  HostMatmul product{.a = a.matrix(), .b = b.matrix().transposed(), .c = c.matrix()};
  CHECK(check_sums(product, key).error > 1e4);
  product.before = before.matrix();
  CHECK(check_sums(product, key).error < tolerance / 2);
}

TEST_CASE("what f16 cannot hold is no fault, and what it can hold is", "[matmul_sums]") {
  Numbers a = random(20, 30, 1, DType::f16);
  Numbers b = random(9, 30, 2, DType::f16);
  for (std::int64_t k = 0; k < 30; ++k) {
    a.at(4, k) = b.at(5, k) = 1000;  // 3e7
  }
  Numbers c = product_of(a, b, {}, DType::f16, 1);
  REQUIRE(std::isinf(c.at(4, 5)));
  const HostMatmul product{
      .a = a.matrix(), .b = b.matrix().transposed(), .c = c.matrix(), .stored = DType::f16};
  CHECK(check_sums(product, key).error < tolerance / 2);
  c.at(3, 2) = std::numeric_limits<float>::infinity();
  CHECK(std::isinf(check_sums(product, key).error));
  c.at(3, 2) = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isinf(check_sums(product, key).error));
  a.at(3, 0) = std::numeric_limits<float>::quiet_NaN();  // it makes nan of its row, rightly
  for (std::int64_t j = 0; j < 9; ++j) {
    c.at(3, j) = std::numeric_limits<float>::quiet_NaN();
  }
  CHECK(check_sums(product, key).error < tolerance / 2);
}

TEST_CASE("activations after and in front of a product are held against tanh", "[matmul_sums]") {
  const DType stored = GENERATE(DType::f32, DType::bf16, DType::f16);
  Numbers pre = random(70, 9, 1, stored);
  Numbers y{70, 9};
  Numbers a = random(70, 30, 2, stored);
  Numbers b = random(9, 30, 3, stored);
  Numbers dpre = product_of(a, b, {}, stored, 1);
  const auto inner = [](double x) { return std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x); };
  for (std::size_t i = 0; i < pre.values.size(); ++i) {
    const double x = pre.values[i];
    const double t = std::tanh(inner(x));
    y.values[i] = rounded(static_cast<float>(0.5 * x * (1 + t)), stored);
    const double slope = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
    dpre.values[i] = rounded(
        static_cast<float>(dpre.values[i] * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)),
        stored);
  }
  const HostMatmul product{
      .a = a.matrix(), .b = b.matrix().transposed(), .c = dpre.matrix(), .stored = stored};
  CHECK(check_gelu(pre.matrix(), y.matrix(), stored).error < 2);
  CHECK(check_gelu_gradient(product, pre.matrix(), key).error < tolerance / 2);
  for (std::int64_t row = 0; row < 70; ++row) {
    y.at(row, 4) *= 2;
    dpre.at(row, 4) *= 2;
  }
  CHECK(check_gelu(pre.matrix(), y.matrix(), stored).error > tolerance);
  CHECK(check_gelu_gradient(product, pre.matrix(), key).error > 0.03 / train::roundoff(stored));
}

TEST_CASE("column sums are each held against their own", "[matmul_sums]") {
  const Numbers x = random(300, 6, 1, DType::bf16);
  std::vector<float> before = random(1, 6, 2, DType::f32).values;
  std::vector<float> sums = before;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    sums[i % 6] += x.values[i];
  }
  CHECK(check_column_sums(x.matrix(), before, sums).error < tolerance / 2);
  sums[5] += 1e-3F;
  const train::Departure off = check_column_sums(x.matrix(), before, sums);
  CHECK(off.error > tolerance);
  CHECK(off.place == "bias gradient 5");
}
