// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/tensors.hpp"

#include <fourfold/kernels/embedding.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace {

using namespace fourfold;
using namespace fourfold::kernels;
using namespace fourfold::kernels::test;

/// i32 numbers below `limit`, many of them twice.
device::Tensor random_indices(std::int64_t count, std::uint32_t limit, std::uint64_t stream) {
  device::Tensor result(DType::i32, {count});
  const PhiloxKey key = philox_key(3, RandomUse::test, stream);
  for (std::int64_t t = 0; t < count; ++t) {
    result.as<std::int32_t>()[t] =
        static_cast<std::int32_t>(philox(key, static_cast<std::uint64_t>(t)).word[0] % limit);
  }
  return result;
}

}  // namespace

TEST_CASE("embedding equals its reference", "[embedding]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool positions = GENERATE(true, false);
  for (const std::int64_t tokens : odd_rows) {
    for (const std::int64_t features : odd_features) {
      CAPTURE(name(dtype), positions, tokens, features);
      // Rows 20 .. 59 of a vocabulary of 80 are at hand.
      const device::Tensor token = random_indices(tokens, 80, 1);
      const device::Tensor position = random_indices(tokens, 31, 2);
      const device::Tensor weight = random_tensor(dtype, {40, features}, 3);
      const device::Tensor position_weight = random_tensor(dtype, {31, features}, 4);
      const ConstTensorView table =
          positions ? ConstTensorView(position_weight) : ConstTensorView();
      device::Tensor fast = random_tensor(dtype, {tokens, features}, 5);
      device::Tensor plain(dtype, {tokens, features});
      embedding(token, weight, 20, table, position, fast, {});
      reference::embedding(token, weight, 20, table, position, plain, {});
      CHECK(same_bits(fast, plain));
    }
  }
}

TEST_CASE("a table looked up in tiles, then positions, has the bits of one look-up",
          "[embedding]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  for (const std::int64_t tokens : odd_rows) {
    for (const std::int64_t features : odd_features) {
      CAPTURE(name(dtype), tokens, features);
      const device::Tensor token = random_indices(tokens, 80, 1);  // rows 20 .. 59 are at hand
      const device::Tensor position = random_indices(tokens, 31, 2);
      const device::Tensor weight = random_tensor(dtype, {40, features}, 3);
      const device::Tensor position_weight = random_tensor(dtype, {31, features}, 4);
      device::Tensor whole(dtype, {tokens, features});
      embedding(token, weight, 20, position_weight, position, whole, {});
      for (const bool fast : {true, false}) {
        const auto add = fast ? embedding_add : reference::embedding_add;
        device::Tensor tiled = random_tensor(dtype, {tokens, features}, 5);
        embedding(token, weight.view().rows(0, 17), 20, {}, {}, tiled, {});
        add(token, weight.view().rows(17, 1), 37, tiled, {});
        add(token, weight.view().rows(18, 22), 38, tiled, {});
        add(position, position_weight.view().rows(0, 30), 0, tiled, {});
        add(position, position_weight.view().rows(30, 1), 30, tiled, {});
        CHECK(same_bits(tiled, whole));
      }
    }
  }
}

TEST_CASE("embedding_backward sums each row in the order of t, bit for bit", "[embedding]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool positions = GENERATE(true, false);
  for (const std::int64_t tokens : odd_rows) {
    for (const std::int64_t features : odd_features) {
      CAPTURE(name(dtype), positions, tokens, features);
      const device::Tensor token = random_indices(tokens, 80, 1);
      const device::Tensor position = random_indices(tokens, 31, 2);
      const device::Tensor dy = random_tensor(dtype, {tokens, features}, 3);
      const device::Tensor fast = random_tensor(DType::f32, {40, features}, 4);
      const device::Tensor plain = copy_of(fast);
      const device::Tensor fast_position = random_tensor(DType::f32, {31, features}, 5);
      const device::Tensor plain_position = copy_of(fast_position);
      // The reference adds row by row: equal bits mean the same order in every row.
      embedding_backward(token, dy, 20, fast, position,
                         positions ? TensorView(fast_position) : TensorView(), {});
      reference::embedding_backward(token, dy, 20, plain, position,
                                    positions ? TensorView(plain_position) : TensorView(), {});
      CHECK(same_bits(fast, plain));
      CHECK(same_bits(fast_position, plain_position));
    }
  }
}

TEST_CASE("embedding_backward keeps the order in rows of many tokens, and between packs",
          "[embedding]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  constexpr std::int64_t features = 64;
  for (const std::int64_t tokens : {0, 1, 9, 1000}) {
    for (const std::uint32_t rows : {1U, 3U}) {
      for (const std::int64_t aside : {0, 1}) {
        CAPTURE(name(dtype), tokens, rows, aside);
        const device::Tensor token = random_indices(tokens, rows, 1);
        const device::Tensor all_dy = random_tensor(dtype, {tokens * features + aside}, 3);
        const TensorView dy =
            all_dy.view().rows(aside, tokens * features).reshape({tokens, features});
        const device::Tensor fast = random_tensor(DType::f32, {3, features}, 4);
        const device::Tensor plain = copy_of(fast);
        embedding_backward(token, dy, 0, fast, {}, {}, {});
        reference::embedding_backward(token, dy, 0, plain, {}, {}, {});
        CHECK(same_bits(fast, plain));
      }
    }
  }
}

TEST_CASE("embedding_backward is the transpose of embedding", "[embedding]") {
  constexpr std::int64_t tokens = 17;
  constexpr std::int64_t features = 7;
  const device::Tensor token = random_indices(tokens, 12, 1);
  const device::Tensor position = random_indices(tokens, 5, 2);
  const device::Tensor weight = random_tensor(DType::f32, {12, features}, 3);
  const device::Tensor position_weight = random_tensor(DType::f32, {5, features}, 4);
  const device::Tensor dy = random_tensor(DType::f32, {tokens, features}, 5);
  device::Tensor y(DType::f32, {tokens, features});
  embedding(token, weight, 0, position_weight, position, y, {});
  const device::Tensor dweight(DType::f32, {12, features});
  const device::Tensor dposition(DType::f32, {5, features});
  embedding_backward(token, dy, 0, dweight, position, dposition, {});
  const auto dot = [](const device::Tensor& a, const device::Tensor& b) {
    const std::vector<double> x = values(a);
    const std::vector<double> z = values(b);
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum += x[i] * z[i];
    }
    return sum;
  };
  CHECK(std::fabs(dot(dy, y) - dot(dweight, weight) - dot(dposition, position_weight)) <= 1e-5);
}
