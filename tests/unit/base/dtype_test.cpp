// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/dtype.hpp>

#include <catch2/catch_test_macros.hpp>

#include <bit>
#include <cmath>
#include <limits>

using fourfold::BFloat16;
using fourfold::DType;
using fourfold::Float16;

TEST_CASE("dtype names are each other's inverse", "[dtype]") {
  for (int i = 0; i <= static_cast<int>(DType::u64); ++i) {
    const auto dtype = static_cast<DType>(i);
    CHECK(fourfold::dtype_from_name(fourfold::name(dtype)) == dtype);
  }
  CHECK_FALSE(fourfold::dtype_from_name("float").has_value());
  CHECK(fourfold::size_in_bytes(DType::bf16) == 2);
}

TEST_CASE("every bfloat16 and float16 value survives the way through float", "[dtype]") {
  for (std::uint32_t word = 0; word < 0x10000U; ++word) {
    BFloat16 b;
    b.bits = static_cast<std::uint16_t>(word);
    const auto widened = static_cast<float>(b);
    if (!std::isnan(widened)) {
      REQUIRE(BFloat16(widened).bits == b.bits);
    } else {
      REQUIRE(std::isnan(static_cast<float>(BFloat16(widened))));
    }
    Float16 h;
    h.bits = static_cast<std::uint16_t>(word);
    const auto half = static_cast<float>(h);
    if (!std::isnan(half)) {
      REQUIRE(Float16(half).bits == h.bits);
    } else {
      REQUIRE(std::isnan(static_cast<float>(Float16(half))));
    }
  }
}

TEST_CASE("narrowing rounds to nearest, ties to even", "[dtype]") {
  CHECK(BFloat16(1.0F + 0x1p-8F).bits == 0x3f80);            // tie, down to even
  CHECK(BFloat16(1.0F + 0x1p-7F + 0x1p-8F).bits == 0x3f82);  // tie, up to even
  CHECK(BFloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(Float16(1.0F + 0x1p-11F).bits == 0x3c00);
  CHECK(Float16(65519.0F).bits == 0x7bff);
  CHECK(Float16(65520.0F).bits == 0x7c00);
  CHECK(Float16(0x1p-24F).bits == 1);
  CHECK(Float16(0x1p-25F).bits == 0);
  CHECK(Float16(0x1.8p-25F).bits == 1);
}
