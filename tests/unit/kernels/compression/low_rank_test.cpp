// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/tensors.hpp"

#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/compression.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <limits>

namespace {

using namespace fourfold;
using namespace fourfold::kernels;
using namespace fourfold::kernels::test;

double dot(ConstTensorView x_RN, std::int64_t a, std::int64_t b) {
  double sum = 0;
  for (std::int64_t i = 0; i < x_RN.dim(1); ++i) {
    sum += read_element(x_RN, a * x_RN.dim(1) + i) * read_element(x_RN, b * x_RN.dim(1) + i);
  }
  return sum;
}

/// Largest |x x^T - identity|, where zero rows count as orthonormal.
double worst_angle(ConstTensorView x_RN) {
  double worst = 0;
  for (std::int64_t a = 0; a < x_RN.dim(0); ++a) {
    for (std::int64_t b = 0; b <= a; ++b) {
      const double wanted = a == b && dot(x_RN, a, a) != 0 ? 1.0 : 0.0;
      worst = std::max(worst, std::fabs(dot(x_RN, a, b) - wanted));
    }
  }
  return worst;
}

/// x[row] = factor * x[from].
void set_row(const device::Tensor& x_RN, std::int64_t row, std::int64_t from, float factor) {
  const std::int64_t columns = x_RN.shape()[1];
  for (std::int64_t i = 0; i < columns; ++i) {
    x_RN.as<float>()[row * columns + i] = factor * x_RN.as<float>()[from * columns + i];
  }
}

}  // namespace

TEST_CASE("rows become orthonormal and span what they did", "[low_rank]") {
  const auto body = GENERATE(orthonormalise_rows, reference::orthonormalise_rows);
  for (const std::int64_t rows : {1, 2, 4, 7}) {
    for (const std::int64_t columns : {7, 33, 1000, 40001}) {
      CAPTURE(rows, columns);
      const device::Tensor before = random_tensor(DType::f32, {rows, columns}, 1, 3.0, 1.0);
      const device::Tensor x = copy_of(before);
      body(x, {});
      CHECK(worst_angle(x) <= 1e-6);
      // What is left of the old rows when their parts along the new ones are taken out.
      for (std::int64_t row = 0; row < rows; ++row) {
        double left = dot(before, row, row);
        for (std::int64_t other = 0; other <= row; ++other) {
          double part = 0;
          for (std::int64_t i = 0; i < columns; ++i) {
            part += read_element(before, row * columns + i) * read_element(x, other * columns + i);
          }
          left -= part * part;
        }
        CHECK(std::fabs(left) <= 1e-5 * dot(before, row, row));
      }
    }
  }
}

TEST_CASE("orthonormal rows are those of the reference", "[low_rank]") {
  const device::Tensor fast = random_tensor(DType::f32, {5, 20011}, 1);
  const device::Tensor plain = copy_of(fast);
  orthonormalise_rows(fast, {});
  reference::orthonormalise_rows(plain, {});
  CHECK(worst_error(fast, plain, 1e-2) <= 1e-5);
}

TEST_CASE("a row that others make up becomes zero, not noise", "[low_rank]") {
  const auto body = GENERATE(orthonormalise_rows, reference::orthonormalise_rows);
  const device::Tensor x = random_tensor(DType::f32, {5, 501}, 1);
  set_row(x, 1, 0, -3.7F);  // f32 rounds: what is left is noise of 1e-7
  set_row(x, 3, 2, 1e-12F);
  set_row(x, 4, 0, 0.0F);
  body(x, {});
  CHECK(worst_angle(x) <= 1e-6);
  CHECK(dot(x, 1, 1) == 0);
  CHECK(dot(x, 3, 3) == 0);
  CHECK(dot(x, 4, 4) == 0);
  CHECK(std::fabs(dot(x, 2, 2) - 1) <= 1e-6);
}

TEST_CASE("rows that are not finite stay so", "[low_rank]") {
  const auto body = GENERATE(orthonormalise_rows, reference::orthonormalise_rows);
  const float bad =
      GENERATE(std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN());
  const device::Tensor x = random_tensor(DType::f32, {3, 100}, 1);
  x.as<float>()[150] = bad;
  body(x, {});
  CHECK(std::isfinite(dot(x, 0, 0)));
  CHECK_FALSE(std::isfinite(dot(x, 1, 1)));
  CHECK_FALSE(std::isfinite(dot(x, 2, 2)));
}

TEST_CASE("thin products and what they leave out equal their references", "[low_rank]") {
  for (const std::int64_t rank : {1, 3, 8}) {
    for (const std::int64_t rows : odd_rows) {
      for (const std::int64_t columns : {1, 31, 64, 129}) {
        CAPTURE(rank, rows, columns);
        const device::Tensor a = random_tensor(DType::f32, {rank, rows}, 1);
        const device::Tensor b = random_tensor(DType::f32, {rank, columns}, 2);
        const device::Tensor fast = random_tensor(DType::f32, {rows, columns}, 3);
        const device::Tensor plain = copy_of(fast);
        low_rank_remainder(a, b, 0.25F, fast, {});
        reference::low_rank_remainder(a, b, 0.25F, plain, {});
        CHECK(worst_error(fast, plain, 1.0) <= 1e-6);
        low_rank_product(a, b, fast, {});
        reference::low_rank_product(a, b, plain, {});
        CHECK(worst_error(fast, plain, 1.0) <= 2e-6);
      }
    }
  }
}

TEST_CASE("the product with orthonormal rows is the part of a matrix along them", "[low_rank]") {
  // A matrix of rank 2, and two orthonormal columns of its range: nothing is left out.
  constexpr std::int64_t rows = 37;
  constexpr std::int64_t columns = 53;
  const device::Tensor a = random_tensor(DType::f32, {2, rows}, 1);
  const device::Tensor b = random_tensor(DType::f32, {2, columns}, 2);
  const device::Tensor matrix(DType::f32, {rows, columns});
  low_rank_product(a, b, matrix, {});
  const device::Tensor p = copy_of(a);
  orthonormalise_rows(p, {});
  const device::Tensor q(DType::f32, {2, columns});
  for (std::int64_t r = 0; r < 2; ++r) {
    for (std::int64_t m = 0; m < columns; ++m) {
      double sum = 0;
      for (std::int64_t n = 0; n < rows; ++n) {
        sum += read_element(p, r * rows + n) * read_element(matrix, n * columns + m);
      }
      write_element(q, r * columns + m, sum);
    }
  }
  low_rank_remainder(p, q, 1.0F, matrix, {});
  CHECK(worst_error(matrix, std::vector<double>(rows * columns)) <= 3e-6);
}

TEST_CASE("rows of zeros are replaced, others are not", "[low_rank]") {
  const auto body = GENERATE(replace_zero_rows, reference::replace_zero_rows);
  const device::Tensor other = random_tensor(DType::f32, {3, 41}, 1);
  const device::Tensor x = random_tensor(DType::f32, {3, 41}, 2);
  const device::Tensor before = copy_of(x);
  set_row(x, 1, 1, 0.0F);
  x.as<float>()[0] = 0;  // one zero makes no row of zeros
  before.as<float>()[0] = 0;
  body(other, x, {});
  CHECK(same_bits(x.view().rows(0, 1), before.view().rows(0, 1)));
  CHECK(same_bits(x.view().rows(1, 1), other.view().rows(1, 1)));
  CHECK(same_bits(x.view().rows(2, 1), before.view().rows(2, 1)));
}

TEST_CASE("a multiple is added, in place too", "[low_rank]") {
  const auto body = GENERATE(add_scaled, reference::add_scaled);
  const device::Tensor x = random_tensor(DType::f32, {1001}, 1);
  const device::Tensor y = random_tensor(DType::f32, {1001}, 2);
  const device::Tensor out(DType::f32, {1001});
  body(x, 4.0F, y, out, {});
  for (std::int64_t i = 0; i < 1001; ++i) {
    const double expected = read_element(x, i) + 4 * read_element(y, i);
    REQUIRE(read_element(out, i) == static_cast<double>(static_cast<float>(expected)));
  }
  const device::Tensor in_place = copy_of(y);
  body(x, 4.0F, in_place, in_place, {});
  CHECK(same_bits(in_place, out));
  body(x, 4.0F, y, x, {});
  CHECK(same_bits(x, out));
}
