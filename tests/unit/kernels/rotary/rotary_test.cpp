// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/random_tensor.hpp"

#include <fourfold/kernels/rotary.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>

using namespace fourfold;
using device::Tensor;

namespace {

constexpr device::StreamRef stream;
constexpr std::int64_t positions = 200;

Tensor angle_table(std::int64_t head_dim) {
  Tensor table(DType::f32, {positions, head_dim});
  const std::int64_t half = head_dim / 2;
  for (std::int64_t p = 0; p < positions; ++p) {
    for (std::int64_t h = 0; h < half; ++h) {
      const double angle =
          static_cast<double>(p) *
          std::pow(10000.0, -2.0 * static_cast<double>(h) / static_cast<double>(head_dim));
      table.as<float>()[p * head_dim + h] = static_cast<float>(std::cos(angle));
      table.as<float>()[p * head_dim + half + h] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

/// Descending from 150, so that the token number cannot pass for the position.
Tensor some_positions(std::int64_t tokens) {
  Tensor position(DType::i32, {tokens});
  for (std::int64_t t = 0; t < tokens; ++t) {
    position.as<std::int32_t>()[t] = static_cast<std::int32_t>(150 - t);
  }
  return position;
}

}  // namespace

TEST_CASE("rotary turns the pair (h, h + H/2) as a complex number", "[rotary]") {
  Tensor x(DType::f32, {1, 2});
  x.as<float>()[0] = 3;
  x.as<float>()[1] = 4;
  Tensor position(DType::i32, {1});
  position.as<std::int32_t>()[0] = 2;
  const kernels::Heads heads{x.view().data(), DType::f32, 2, 2};
  kernels::rotary(heads, 1, 1, 1, 2, angle_table(2), position, false, stream);
  CHECK(std::fabs(x.as<float>()[0] - (3 * std::cos(2.0) - 4 * std::sin(2.0))) < 1e-6);
  CHECK(std::fabs(x.as<float>()[1] - (3 * std::sin(2.0) + 4 * std::cos(2.0))) < 1e-6);
}

TEST_CASE("rotary agrees with the reference, leaves its neighbours, and turns back", "[rotary]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t tokens = GENERATE(1, 3, 17, 65, 129);
  const std::int64_t heads = GENERATE(1, 5);
  const std::int64_t head_dim = GENERATE(2, 6, 26, 64, 80);
  CAPTURE(name(dtype), tokens, heads, head_dim);
  const std::int64_t batch = 2;
  const std::int64_t width = (heads + 2) * head_dim;  // one head before ours and one after
  const Tensor x = test::random_tensor(dtype, {batch, tokens, width}, 1);
  const Tensor original = test::copy_of(x);
  const Tensor expected = test::copy_of(x);
  const auto ours = [&](const Tensor& tensor) {
    auto* data = static_cast<std::byte*>(tensor.view().data());
    return kernels::Heads{data + static_cast<std::size_t>(head_dim) * size_in_bytes(dtype), dtype,
                          tokens * width, width};
  };
  const Tensor table = angle_table(head_dim);
  const Tensor position = some_positions(tokens);
  kernels::rotary(ours(x), batch, tokens, heads, head_dim, table, position, false, stream);
  kernels::reference::rotary(ours(expected), batch, tokens, heads, head_dim, table, position, false,
                             stream);
  // 16 bits: one last place where the two products' rounding falls on both sides of a middle.
  const double last_place = test::last_place(dtype);
  CHECK(test::difference(x, expected) <= (dtype == DType::f32 ? 3e-7 : last_place));
  kernels::rotary(ours(x), batch, tokens, heads, head_dim, table, position, true, stream);
  CHECK(test::difference(x, original) <= (dtype == DType::f32 ? 6e-7 : 2 * last_place));
  for (std::int64_t row = 0; row < batch * tokens; ++row) {
    for (std::int64_t h = 0; h < head_dim; ++h) {
      const std::int64_t last = row * width + (heads + 1) * head_dim + h;
      REQUIRE(test::element(x, row * width + h) == test::element(original, row * width + h));
      REQUIRE(test::element(x, last) == test::element(original, last));
    }
  }
}
