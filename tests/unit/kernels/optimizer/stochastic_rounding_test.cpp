// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/tensors.hpp"

#include <fourfold/kernels/optimizer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <bit>
#include <limits>

namespace {

using namespace fourfold;
using namespace fourfold::kernels;
using namespace fourfold::kernels::test;

StochasticRounding one_row(std::int64_t elements, std::int64_t update = 3) {
  return {.key = rounding_key(11, update, 77), .row_elements = elements, .row_stride = elements};
}

/// The bf16 next to x towards zero, or x.
double towards_zero(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xFFFF0000U);
}

}  // namespace

TEST_CASE("rounding at random equals its reference, in either place", "[stochastic_rounding]") {
  const MemorySpace place = GENERATE(MemorySpace::device, MemorySpace::host);
  for (const std::int64_t elements : {0, 1, 7, 4096, 10007}) {
    for (const std::int64_t aside : {0, 1, 4}) {
      for (const std::int64_t row : {elements + 1, std::int64_t{12}, std::int64_t{5}}) {
        CAPTURE(elements, aside, row);
        const device::Tensor all = random_tensor(DType::f32, {elements + aside}, 1);
        const ConstTensorView x = all.view().rows(aside, elements);
        const StochasticRounding rounding{.key = rounding_key(1, 2, 3),
                                          .first = 40,
                                          .row_elements = row,
                                          .row_stride = row + 16,
                                          .begin = aside};
        const device::Tensor fast(DType::bf16, {elements + aside});
        const device::Tensor plain(DType::bf16, {elements});
        const TensorView got = fast.view().rows(aside, elements);
        round_stochastically(rounding, x, got, {}, place);
        reference::round_stochastically(rounding, x, plain, {});
        CHECK(same_bits(got, plain));
      }
    }
  }
}

TEST_CASE("the mean of many roundings is the number", "[stochastic_rounding]") {
  constexpr std::int64_t count = 64;
  constexpr int draws = 4000;
  device::Tensor x = random_tensor(DType::f32, {count}, 1);
  x.as<float>()[0] = 1.0F + 0x1p-23F;  // as near to a bf16 as can be, from above and below
  x.as<float>()[1] = 2.0F - 0x1p-23F;
  x.as<float>()[2] = -3e-41F;  // subnormal
  std::vector<double> sum(count, 0.0);
  const device::Tensor y(DType::bf16, {count});
  for (int update = 0; update < draws; ++update) {
    round_stochastically(one_row(count, update), x, y, {});
    for (std::int64_t i = 0; i < count; ++i) {
      sum[static_cast<std::size_t>(i)] += read_element(y, i);
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    CAPTURE(i);
    const float value = x.as<float>()[i];
    const double inner = towards_zero(value);
    const double spacing = std::fabs(
        std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) & 0xFFFF0000U) + 0x10000U) -
        inner);
    // Of a Bernoulli number: variance p (1 - p); and at least one draw more or less.
    const double p = std::fabs(static_cast<double>(value) - inner) / spacing;
    const double error = spacing * (5 * std::sqrt(p * (1 - p) / draws) + 2.0 / draws);
    CHECK(std::fabs(sum[static_cast<std::size_t>(i)] / draws - static_cast<double>(value)) <=
          error);
  }
}

TEST_CASE("what bf16 holds stays, and what is no number", "[stochastic_rounding]") {
  constexpr std::int64_t count = 65536;
  device::Tensor x(DType::f32, {count});
  for (std::int64_t i = 0; i < count; ++i) {
    x.as<float>()[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i) << 16);
  }
  const device::Tensor y(DType::bf16, {count});
  for (const std::int64_t update : {1, 2, 3}) {
    round_stochastically(one_row(count, update), x, y, {});
    for (std::int64_t i = 0; i < count; ++i) {
      const float before = x.as<float>()[i];
      const auto after = static_cast<float>(y.as<BFloat16>()[i]);
      REQUIRE((std::isnan(before)
                   ? std::isnan(after)
                   : std::bit_cast<std::uint32_t>(before) == std::bit_cast<std::uint32_t>(after)));
    }
  }
  for (const std::uint32_t nan : {0x7F800001U, 0x7FFFFFFFU, 0xFFFFFFFFU, 0xFF800001U}) {
    device::Tensor one(DType::f32, {1});
    one.as<float>()[0] = std::bit_cast<float>(nan);
    const device::Tensor rounded(DType::bf16, {1});
    round_stochastically(one_row(1), one, rounded, {});
    CHECK(std::isnan(read_element(rounded, 0)));
  }
}

TEST_CASE("rounding at random has the same bits for any cut", "[stochastic_rounding]") {
  constexpr std::int64_t rows = 37;
  constexpr std::int64_t columns = 52;
  const device::Tensor x = random_tensor(DType::f32, {rows, columns}, 1);
  const device::Tensor whole(DType::bf16, {rows, columns});
  const StochasticRounding all = one_row(columns);
  round_stochastically(all, x, whole, {});
  // Flat ranges.
  const device::Tensor flat(DType::bf16, {rows * columns});
  for (const auto& [begin, count] :
       {std::pair<std::int64_t, std::int64_t>{0, 1}, {1, 777}, {778, rows * columns - 778}}) {
    StochasticRounding part = all;
    part.begin = begin;
    round_stochastically(part, x.view().reshape({rows * columns}).rows(begin, count),
                         flat.view().rows(begin, count), {});
  }
  CHECK(same_bits(whole.view().reshape({rows * columns}), flat));
  // A part of rows and columns, stored densely.
  constexpr std::int64_t first_row = 5;
  constexpr std::int64_t first_column = 12;
  constexpr std::int64_t some_rows = 9;
  constexpr std::int64_t some_columns = 19;
  const device::Tensor dense(DType::f32, {some_rows, some_columns});
  for (std::int64_t i = 0; i < some_rows * some_columns; ++i) {
    dense.as<float>()[i] =
        x.as<float>()[(first_row + i / some_columns) * columns + first_column + i % some_columns];
  }
  const device::Tensor part(DType::bf16, {some_rows, some_columns});
  round_stochastically({.key = all.key,
                        .first = first_row * columns + first_column,
                        .row_elements = some_columns,
                        .row_stride = columns},
                       dense, part, {});
  for (std::int64_t i = 0; i < some_rows * some_columns; ++i) {
    REQUIRE(read_element(part, i) == read_element(whole, (first_row + i / some_columns) * columns +
                                                             first_column + i % some_columns));
  }
}

TEST_CASE("roundings of other updates, tensors and seeds differ", "[stochastic_rounding]") {
  constexpr std::int64_t count = 4096;
  const device::Tensor x = random_tensor(DType::f32, {count}, 1);
  const auto rounded = [&](PhiloxKey key) {
    device::Tensor y(DType::bf16, {count});
    round_stochastically({.key = key, .row_elements = count, .row_stride = count}, x, y, {});
    return y;
  };
  const device::Tensor one = rounded(rounding_key(1, 2, 3));
  CHECK(same_bits(one, rounded(rounding_key(1, 2, 3))));
  CHECK_FALSE(same_bits(one, rounded(rounding_key(2, 2, 3))));
  CHECK_FALSE(same_bits(one, rounded(rounding_key(1, 3, 3))));
  CHECK_FALSE(same_bits(one, rounded(rounding_key(1, 2, 4))));
}

TEST_CASE("updates round their weights at random as round_stochastically does",
          "[stochastic_rounding]") {
  constexpr std::int64_t count = 10007;
  const MemorySpace place = GENERATE(MemorySpace::device, MemorySpace::host);
  const bool fast = GENERATE(true, false);
  const bool adams = GENERATE(true, false);
  CAPTURE(fast, adams);
  const device::Tensor gradient = random_tensor(DType::f32, {count}, 4);
  // The masters of an update, which every one begins from the same.
  const auto update = [&](const device::Tensor& weight, bool at_random) {
    device::Tensor master = random_tensor(DType::f32, {count}, 1);
    const device::Tensor exp_avg = random_tensor(DType::f32, {count}, 2, 0.1);
    const device::Tensor exp_avg_sq(DType::f32, {count});
    AdamStep adam_step{.lr = 1e-3F, .weight_decay = 0.1F, .step = 3, .place = place};
    SgdStep sgd_step{.lr = 1e-3F, .momentum = 0.9F, .place = place};
    if (at_random) {
      adam_step.stochastic_rounding = sgd_step.stochastic_rounding = one_row(count);
    }
    if (adams) {
      (fast ? adam : reference::adam)(adam_step, master, exp_avg, exp_avg_sq, gradient, weight, {});
    } else {
      (fast ? sgd : reference::sgd)(sgd_step, master, exp_avg, gradient, weight, {});
    }
    return master;
  };
  const device::Tensor weight(DType::bf16, {count});
  const device::Tensor nearest(DType::bf16, {count});
  update(nearest, false);
  const device::Tensor master = update(weight, true);
  device::Tensor expected(DType::bf16, {count});
  round_stochastically(one_row(count), master, expected, {}, place);
  if (fast) {
    CHECK(same_bits(weight, expected));
  } else {
    CHECK(worst_error(weight, expected, 1e-3) <= 0x1p-7);
  }
  CHECK_FALSE(same_bits(weight, nearest));
}
