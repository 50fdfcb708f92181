// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/tensors.hpp"

#include <fourfold/kernels/cast.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <bit>
#include <limits>

namespace {

using namespace fourfold;
using namespace fourfold::kernels;
using namespace fourfold::kernels::test;

/// Equal bits, or both NaN (which NaN is nobody's business).
template <class T>
bool same_values(const T* a, const T* b, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const bool both_nan =
        std::isnan(static_cast<float>(a[i])) && std::isnan(static_cast<float>(b[i]));
    if (!both_nan && std::memcmp(a + i, b + i, sizeof(T)) != 0) {
      return false;
    }
  }
  return true;
}

/// All 65536 values of a 16-bit format, to f32 and back.
template <class T>
void check_all_values() {
  constexpr std::int64_t count = 65536;
  device::Tensor source(dtype_of<T>, {count});
  for (std::int64_t i = 0; i < count; ++i) {
    source.as<T>()[i].bits = static_cast<std::uint16_t>(i);
  }
  device::Tensor wide(DType::f32, {count});
  cast(source, wide, {});
  for (std::int64_t i = 0; i < count; ++i) {
    const auto expected = static_cast<float>(source.as<T>()[i]);
    REQUIRE(same_values(wide.as<float>() + i, &expected, 1));
  }
  device::Tensor back(dtype_of<T>, {count});
  cast(wide, back, {});
  CHECK(same_values(back.as<T>(), source.as<T>(), count));
}

/// f32 bit patterns a large prime apart, and the neighbours of every tie of both 16-bit formats.
device::Tensor many_floats() {
  std::vector<std::uint32_t> patterns;
  for (std::uint64_t bits = 0; bits <= 0xffffffffULL; bits += 20011) {
    patterns.push_back(static_cast<std::uint32_t>(bits));
  }
  for (std::uint32_t upper = 0; upper < 0x10000U; upper += 7) {
    for (const std::uint32_t lower : {0x7fffU, 0x8000U, 0x8001U, 0x0fffU, 0x1000U, 0x1001U}) {
      patterns.push_back((upper << 16) | lower);
    }
  }
  for (const float value :
       {65504.0F, 65519.996F, 65520.0F, 65536.0F, 0x1p-24F, 0x1p-25F, 0x1.8p-25F, 0x1p-14F, 6.1e-5F,
        std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), 3.4e38F}) {
    patterns.push_back(std::bit_cast<std::uint32_t>(value));
  }
  device::Tensor result(DType::f32, {static_cast<std::int64_t>(patterns.size())});
  std::memcpy(result.as<float>(), patterns.data(), patterns.size() * 4);
  return result;
}

template <class T>
void check_rounding() {
  const device::Tensor source = many_floats();
  const std::int64_t count = source.shape().elements();
  device::Tensor narrow(dtype_of<T>, {count});
  cast(source, narrow, {});
  std::vector<T> expected(static_cast<std::size_t>(count));
  std::transform(source.as<float>(), source.as<float>() + count, expected.begin(),
                 [](float value) { return T(value); });
  CHECK(same_values(narrow.as<T>(), expected.data(), count));
}

}  // namespace

TEST_CASE("every 16-bit value goes to f32 and back", "[cast]") {
  check_all_values<BFloat16>();
  check_all_values<Float16>();
}

TEST_CASE("casts to 16 bits round to nearest even", "[cast]") {
  check_rounding<BFloat16>();
  check_rounding<Float16>();
}

TEST_CASE("casts equal their reference", "[cast]") {
  const DType from = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType to = GENERATE(DType::f32, DType::bf16, DType::f16);
  for (const std::int64_t elements : {0, 1, 7, 129, 10007}) {
    CAPTURE(name(from), name(to), elements);
    const device::Tensor source = random_tensor(from, {elements}, 1);
    device::Tensor fast(to, {elements});
    device::Tensor plain(to, {elements});
    cast(source, fast, {});
    reference::cast(source, plain, {});
    CHECK(same_bits(fast, plain));
  }
}
