// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/tensors.hpp"

#include <fourfold/kernels/dropout.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <numeric>

namespace {

using namespace fourfold;
using namespace fourfold::kernels;
using namespace fourfold::kernels::test;

/// Rows of several sequences, in the middle of a run.
struct Rows {
  explicit Rows(std::int64_t rows) : sample(DType::i64, {rows}), position(DType::i32, {rows}) {
    for (std::int64_t t = 0; t < rows; ++t) {
      sample.as<std::int64_t>()[t] = (1LL << 33) + t / 100;
      position.as<std::int32_t>()[t] = static_cast<std::int32_t>(t % 100);
    }
  }
  device::Tensor sample;
  device::Tensor position;
};

DropoutSite site_of(float probability = 0.1F) {
  return {.seed = 5, .step = 1000, .site = 3, .probability = probability};
}

device::Tensor ones(std::int64_t rows, std::int64_t features) {
  device::Tensor x(DType::f32, {rows, features});
  std::fill_n(x.as<float>(), rows * features, 1.0F);
  return x;
}

/// What dropout makes of ones: 0 or 1 / (1 - probability).
device::Tensor mask(const DropoutSite& site, const Rows& rows, std::int64_t count,
                    std::int64_t features) {
  device::Tensor y(DType::f32, {count, features});
  dropout_add(site, ones(count, features), ConstTensorView(), rows.sample, rows.position, y, {});
  return y;
}

}  // namespace

TEST_CASE("dropout equals its reference", "[dropout]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  for (const std::int64_t rows : odd_rows) {
    for (const std::int64_t features : odd_features) {
      CAPTURE(name(dtype), rows, features);
      const Rows where(rows);
      const DropoutSite site = site_of(0.3F);
      const device::Tensor x = random_tensor(dtype, {rows, features}, 1);
      const device::Tensor residual = random_tensor(dtype, {rows, features}, 2);
      device::Tensor fast(dtype, {rows, features});
      device::Tensor plain(dtype, {rows, features});
      dropout_add(site, x, residual, where.sample, where.position, fast, {});
      reference::dropout_add(site, x, residual, where.sample, where.position, plain, {});
      CHECK(worst_error(fast, plain, 1.0) <= tolerance(dtype));
      dropout_backward(site, x, where.sample, where.position, fast, {});
      reference::dropout_backward(site, x, where.sample, where.position, plain, {});
      CHECK(worst_error(fast, plain, 1e-3) <= tolerance(dtype));
    }
  }
}

TEST_CASE("dropout keeps the mean and has the variance of a Bernoulli mask", "[dropout]") {
  const float probability = GENERATE(0.1F, 0.5F);
  constexpr std::int64_t rows = 500;
  constexpr std::int64_t features = 1000;
  const device::Tensor y = mask(site_of(probability), Rows(rows), rows, features);
  double sum = 0;
  double squares = 0;
  for (const double value : values(y)) {
    sum += value;
    squares += value * value;
  }
  const double count = rows * features;
  const double variance = probability / (1.0 - static_cast<double>(probability));
  CHECK(std::fabs(sum / count - 1) <= 4.5 * std::sqrt(variance / count));
  CHECK(std::fabs(squares / count - 1 / (1.0 - static_cast<double>(probability))) <= 0.01);
}

TEST_CASE("dropout masks of other steps, sites, samples, positions and seeds differ", "[dropout]") {
  constexpr std::int64_t features = 256;
  const Rows rows(1);
  const DropoutSite site = site_of(0.5F);
  const device::Tensor base = mask(site, rows, 1, features);
  // Two independent fair masks agree in 128 of 256 places; 4.5 standard deviations are 36.
  const auto check_independent = [&](const DropoutSite& other_site, const Rows& other_rows) {
    const device::Tensor other = mask(other_site, other_rows, 1, features);
    int equal = 0;
    for (std::int64_t d = 0; d < features; ++d) {
      equal += base.as<float>()[d] == other.as<float>()[d] ? 1 : 0;
    }
    CHECK(std::abs(equal - 128) <= 36);
  };
  DropoutSite other = site;
  other.step = 1001;
  check_independent(other, rows);
  other = site;
  other.site = 4;
  check_independent(other, rows);
  other = site;
  other.seed = 6;
  check_independent(other, rows);
  Rows next_sample(1);
  ++*next_sample.sample.as<std::int64_t>();
  check_independent(site, next_sample);
  Rows next_position(1);
  ++*next_position.position.as<std::int32_t>();
  check_independent(site, next_position);
}

TEST_CASE("a row's mask does not depend on the rows around it", "[dropout]") {
  constexpr std::int64_t rows = 257;
  constexpr std::int64_t features = 64;
  const DropoutSite site = site_of();
  const Rows where(rows);
  const device::Tensor expected = mask(site, where, rows, features);
  Rows alone(1);
  for (const std::int64_t t : {256, 100, 99, 0}) {
    *alone.sample.as<std::int64_t>() = where.sample.as<std::int64_t>()[t];
    *alone.position.as<std::int32_t>() = where.position.as<std::int32_t>()[t];
    CHECK(same_bits(mask(site, alone, 1, features), expected.view().rows(t, 1)));
  }
}

TEST_CASE("the backward pass draws the forward pass's mask, also in place", "[dropout]") {
  constexpr std::int64_t rows = 17;
  constexpr std::int64_t features = 129;
  const Rows where(rows);
  const DropoutSite site = site_of(0.25F);
  const device::Tensor x = random_tensor(DType::f32, {rows, features}, 1);
  const device::Tensor residual = random_tensor(DType::f32, {rows, features}, 2);
  device::Tensor dropped(DType::f32, {rows, features});
  dropout_add(site, x, ConstTensorView(), where.sample, where.position, dropped, {});
  const device::Tensor backward = copy_of(x);
  dropout_backward(site, backward, where.sample, where.position, backward, {});
  CHECK(same_bits(dropped, backward));
  device::Tensor sum(DType::f32, {rows, features});
  dropout_add(site, x, residual, where.sample, where.position, sum, {});
  const device::Tensor in_place = copy_of(residual);
  dropout_add(site, x, in_place, where.sample, where.position, in_place, {});
  CHECK(same_bits(sum, in_place));
  CHECK(worst_error(sum, [&] {
          std::vector<double> expected = values(residual);
          for (std::size_t i = 0; i < expected.size(); ++i) {
            expected[i] += read_element(dropped, static_cast<std::int64_t>(i));
          }
          return expected;
        }()) <= 1e-6);
}

TEST_CASE("dropout of probability zero copies", "[dropout]") {
  const Rows where(3);
  const device::Tensor x = random_tensor(DType::bf16, {3, 65}, 1);
  device::Tensor y(DType::bf16, {3, 65});
  dropout_add(site_of(0.0F), x, ConstTensorView(), where.sample, where.position, y, {});
  CHECK(same_bits(x, y));
}
