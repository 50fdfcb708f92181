// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/tensors.hpp"

#include <fourfold/kernels/compression.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <limits>

namespace {

using namespace fourfold;
using namespace fourfold::kernels;
using namespace fourfold::kernels::test;

constexpr std::int64_t odd_counts[] = {0, 1, 3, 255, 256, 257, 512, 1000, 10007};

/// Either body, so that one test holds both.
struct Body {
  decltype(&kernels::encode) encode;
  decltype(&kernels::decode) decode;
};
const Body fast{kernels::encode, kernels::decode};
const Body plain{reference::encode, reference::decode};

struct Coded {
  device::Tensor payload;
  device::Tensor error;
  device::Tensor decoded;
};

Coded code(const Body& body, GradientCodec codec, ConstTensorView gradient, ConstTensorView error,
           float error_scale) {
  const std::int64_t count = gradient.elements();
  Coded coded{device::Tensor(DType::u8, {payload_bytes(codec, count)}),
              device::Tensor(DType::f32, {count}), device::Tensor(DType::f32, {count})};
  body.encode(codec, gradient, error, error_scale, coded.error, coded.payload, {});
  body.decode(codec, coded.payload, coded.decoded, Write::replace, {});
  return coded;
}

/// The step between neighbours of the code at element i, by the definition of the codec.
double code_step(GradientCodec codec, ConstTensorView x, std::int64_t i) {
  if (codec == GradientCodec::bf16) {
    return std::ldexp(std::fabs(read_element(x, i)), -7);  // 8 significant bits, at the worst
  }
  const std::int64_t begin = i / codec_block_elements * codec_block_elements;
  const std::int64_t end = std::min(begin + codec_block_elements, x.elements());
  double largest = 0;
  for (std::int64_t k = begin; k < end; ++k) {
    largest = std::max(largest, std::fabs(read_element(x, k)));
  }
  return largest / 127;
}

}  // namespace

TEST_CASE("a payload has the bytes that its codec says", "[gradient_codec]") {
  CHECK(payload_bytes(GradientCodec::bf16, 0) == 0);
  CHECK(payload_bytes(GradientCodec::bf16, 3) == 8);
  CHECK(payload_bytes(GradientCodec::int8, 0) == 0);
  CHECK(payload_bytes(GradientCodec::int8, 1) == 8);  // 4 + 1, and padding
  CHECK(payload_bytes(GradientCodec::int8, 256) == 260);
  CHECK(payload_bytes(GradientCodec::int8, 257) == 268);
}

TEST_CASE("a code is the nearest one, and the error is what it leaves out", "[gradient_codec]") {
  const GradientCodec codec = GENERATE(GradientCodec::bf16, GradientCodec::int8);
  const Body body = GENERATE(fast, plain);
  for (const std::int64_t count : odd_counts) {
    const device::Tensor x = random_tensor(DType::f32, {count}, 1, 1e-3);
    const Coded coded = code(body, codec, x, {}, 1.0F);
    for (std::int64_t i = 0; i < count; ++i) {
      const double value = read_element(x, i);
      const double kept = read_element(coded.decoded, i);
      REQUIRE(std::fabs(value - kept) <= 0.50001 * code_step(codec, x, i));
      REQUIRE(std::fabs(read_element(coded.error, i) - (value - kept)) <= 2e-7 * std::fabs(value));
    }
  }
}

TEST_CASE("both bodies make one payload of numbers that the code has exactly", "[gradient_codec]") {
  const GradientCodec codec = GENERATE(GradientCodec::bf16, GradientCodec::int8);
  for (const std::int64_t count : odd_counts) {
    device::Tensor x(DType::f32, {count});
    for (std::int64_t i = 0; i < count; ++i) {  // every block has a 127: the scale is 2^-4
      x.as<float>()[i] = static_cast<float>(i % 256 == 0 ? 127 : i % 255 - 127) * 0x1p-4F;
    }
    const Coded by_fast = code(fast, codec, x, {}, 1.0F);
    const Coded by_plain = code(plain, codec, x, {}, 1.0F);
    CHECK(same_bits(by_fast.decoded, x));
    CHECK(worst_error(by_fast.error, std::vector<double>(static_cast<std::size_t>(count))) == 0);
    // The last bytes may be padding, which nobody reads.
    const auto meant = static_cast<std::size_t>(
        codec == GradientCodec::bf16 ? 2 * count : count + (count + 255) / 256 * 4);
    CHECK(std::memcmp(by_fast.payload.view().data(), by_plain.payload.view().data(), meant) == 0);
  }
}

TEST_CASE("the error is added before coding, times its scale, and kept without it",
          "[gradient_codec]") {
  const GradientCodec codec = GENERATE(GradientCodec::bf16, GradientCodec::int8);
  const Body body = GENERATE(fast, plain);
  constexpr std::int64_t count = 1003;
  const device::Tensor gradient = random_tensor(DType::f32, {count}, 1);
  const device::Tensor error = random_tensor(DType::f32, {count}, 2, 0x1p-10);
  const Coded coded = code(body, codec, gradient, error, 1024.0F);
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = read_element(gradient, i) + 1024 * read_element(error, i);
    const double left = read_element(coded.error, i) * 1024;
    REQUIRE(std::fabs(x - read_element(coded.decoded, i) - left) <= 1e-6 * (std::fabs(x) + 1));
  }
  SECTION("in place") {
    const device::Tensor kept = copy_of(error);
    const device::Tensor payload(DType::u8, {payload_bytes(codec, count)});
    body.encode(codec, gradient, kept, 1024.0F, kept, payload, {});
    CHECK(same_bits(kept, coded.error));
    CHECK(same_bits(payload, coded.payload));
  }
}

TEST_CASE("decoding adds to what is there, or replaces it", "[gradient_codec]") {
  const GradientCodec codec = GENERATE(GradientCodec::bf16, GradientCodec::int8);
  const Body body = GENERATE(fast, plain);
  constexpr std::int64_t count = 777;
  const device::Tensor x = random_tensor(DType::f32, {count}, 1);
  const Coded coded = code(body, codec, x, {}, 1.0F);
  const device::Tensor sum = random_tensor(DType::f32, {count}, 2);
  const std::vector<double> before = values(sum);
  body.decode(codec, coded.payload, sum, Write::accumulate, {});
  for (std::int64_t i = 0; i < count; ++i) {
    const double expected = before[static_cast<std::size_t>(i)] + read_element(coded.decoded, i);
    REQUIRE(std::fabs(read_element(sum, i) - expected) <= 1e-6 * (std::fabs(expected) + 1));
  }
}

TEST_CASE("zeros stay zeros, and what is too small for a scale is left for later",
          "[gradient_codec]") {
  const Body body = GENERATE(fast, plain);
  device::Tensor x(DType::f32, {600});
  x.as<float>()[300] = 0x1p-120F;
  x.as<float>()[599] = std::numeric_limits<float>::denorm_min();
  const Coded coded = code(body, GradientCodec::int8, x, {}, 1.0F);
  CHECK(worst_error(coded.decoded, std::vector<double>(600)) == 0);
  CHECK(same_bits(coded.error, x));
}

TEST_CASE("what is not finite decodes to what is not", "[gradient_codec]") {
  const GradientCodec codec = GENERATE(GradientCodec::bf16, GradientCodec::int8);
  const Body body = GENERATE(fast, plain);
  const float bad =
      GENERATE(std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
               std::numeric_limits<float>::quiet_NaN());
  const device::Tensor x = random_tensor(DType::f32, {700}, 1);
  x.as<float>()[300] = bad;
  const Coded coded = code(body, codec, x, {}, 1.0F);
  for (std::int64_t i = 0; i < 700; ++i) {
    const bool hit = codec == GradientCodec::bf16 ? i == 300 : i / 256 == 1;
    REQUIRE(std::isfinite(read_element(coded.decoded, i)) == !hit);
    REQUIRE(std::isfinite(read_element(coded.error, i)) == !hit);
  }
}

TEST_CASE("what is applied and what is left add up to what came, over many steps",
          "[gradient_codec]") {
  const GradientCodec codec = GENERATE(GradientCodec::bf16, GradientCodec::int8);
  constexpr std::int64_t count = 1000;
  constexpr int steps = 200;
  const device::Tensor error(DType::f32, {count});
  std::vector<double> came(count, 0.0);
  std::vector<double> applied(count, 0.0);
  for (int step = 0; step < steps; ++step) {
    const device::Tensor gradient =
        random_tensor(DType::f32, {count}, static_cast<std::uint64_t>(step), 1.0, 0.01);
    const device::Tensor payload(DType::u8, {payload_bytes(codec, count)});
    const device::Tensor decoded(DType::f32, {count});
    encode(codec, gradient, error, 1.0F, error, payload, {});
    decode(codec, payload, decoded, Write::replace, {});
    for (std::size_t i = 0; i < count; ++i) {
      came[i] += read_element(gradient, static_cast<std::int64_t>(i));
      applied[i] += read_element(decoded, static_cast<std::int64_t>(i));
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double left = read_element(error, static_cast<std::int64_t>(i));
    REQUIRE(std::fabs(came[i] - applied[i] - left) <= 1e-5);
    REQUIRE(std::fabs(left) <= 0.05);  // it does not grow with the steps
  }
}
