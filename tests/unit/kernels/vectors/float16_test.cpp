// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// The fast conversions against those of base/dtype.hpp, which were written another way.
#include "vectors/float16.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

using namespace fourfold;
using namespace fourfold::kernels;

namespace {

Float16 half_of(std::uint32_t bits) {
  Float16 half;
  half.bits = static_cast<std::uint16_t>(bits);
  return half;
}

bool same_value(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b) && std::signbit(a) == std::signbit(b));
}

/// All NaN are one value, whatever is in them.
bool same_value(Float16 a, Float16 b) {
  return a == b || (std::isnan(static_cast<float>(a)) && std::isnan(static_cast<float>(b)));
}

/// Every number half-way between two neighbours of binary16, and the f32 numbers around it.
std::vector<float> around_all_ties() {
  std::vector<float> result;
  for (std::uint32_t bits = 0; bits < 0x7C00U; ++bits) {
    const auto low = static_cast<float>(half_of(bits));
    const float high = bits == 0x7BFFU ? 65536.0F : static_cast<float>(half_of(bits + 1));
    const float tie = low + (high - low) / 2;
    for (const float value : {std::nextafter(tie, 0.0F), tie, std::nextafter(tie, INFINITY)}) {
      result.push_back(value);
      result.push_back(-value);
    }
  }
  for (const float value : {0.0F, 1e-45F, 0x1p-26F, 65536.0F, 1e10F, 3.4e38F, INFINITY, NAN}) {
    result.push_back(value);
    result.push_back(-value);
  }
  return result;
}

}  // namespace

TEST_CASE("all 65536 halves widen to what dtype.hpp says, alone and in runs", "[float16]") {
  for (std::uint32_t first = 0; first < 0x10000U; first += float16_run) {
    std::array<Float16, float16_run> halves;
    std::array<float, float16_run> run{};
    for (std::uint32_t i = 0; i < float16_run; ++i) {
      halves[i] = half_of(first + i);
    }
    widen_run(halves.data(), run.data());
    for (std::uint32_t i = 0; i < float16_run; ++i) {
      const auto expected = static_cast<float>(halves[i]);
      CAPTURE(first + i);
      REQUIRE(same_value(run[i], expected));
      REQUIRE(same_value(float16_to_float(halves[i].bits), expected));
    }
  }
}

TEST_CASE("floats narrow to what dtype.hpp says around every tie, alone and in runs", "[float16]") {
  std::vector<float> values = around_all_ties();
  values.resize((values.size() + float16_run - 1) / float16_run * float16_run);
  for (std::size_t first = 0; first < values.size(); first += float16_run) {
    std::array<Float16, float16_run> run;
    narrow_run(values.data() + first, run.data());
    for (std::size_t i = 0; i < float16_run; ++i) {
      const float value = values[first + i];
      CAPTURE(value);
      REQUIRE(same_value(run[i], Float16(value)));
      REQUIRE(same_value(half_of(float_to_float16(value)), Float16(value)));
    }
  }
}

// Nearest, ties to even, from the definition: no other half is nearer, and of two as near ones the
// even one was taken.
TEST_CASE("dtype.hpp narrows to the nearest half, ties to the even one", "[float16]") {
  for (const float value : around_all_ties()) {
    if (!(std::fabs(value) < 65520.0F)) {
      continue;
    }
    const std::uint32_t bits = Float16(value).bits & 0x7FFFU;
    const float magnitude = std::fabs(value);
    const double error = std::fabs(static_cast<double>(magnitude) -
                                   static_cast<double>(static_cast<float>(half_of(bits))));
    CAPTURE(value);
    REQUIRE(std::signbit(value) == ((Float16(value).bits & 0x8000U) != 0));
    for (const std::uint32_t other : {bits - 1, bits + 1}) {
      if (other < 0x7C00U) {
        const double distance = std::fabs(static_cast<double>(magnitude) -
                                          static_cast<double>(static_cast<float>(half_of(other))));
        REQUIRE((error < distance || (error == distance && bits % 2 == 0)));
      }
    }
  }
  CHECK(Float16(65520.0F).bits == 0x7C00U);
  CHECK(Float16(-INFINITY).bits == 0xFC00U);
  CHECK(std::isnan(static_cast<float>(Float16(NAN))));
}
