// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Products of the vendor's library by themselves, without the rest of the kernels.
#include "matmul/gemm.hpp"

#include <fourfold/device/buffer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstdint>
#include <tuple>

using namespace fourfold;
using kernels::Gemm;
using kernels::Write;

namespace {

/// Small whole numbers: products of them are exact in every type.
float number(std::int64_t i, int seed) {
  return static_cast<float>((i * 7 + seed * 3) % 5 - 2);
}

device::Tensor filled(DType dtype, std::int64_t elements, int seed) {
  device::Tensor tensor(dtype, {elements});
  for (std::int64_t i = 0; i < elements; ++i) {
    if (dtype == DType::bf16) {
      tensor.as<BFloat16>()[i] = BFloat16(number(i, seed));
    } else if (dtype == DType::f16) {
      tensor.as<Float16>()[i] = Float16(number(i, seed));
    } else {
      tensor.as<float>()[i] = number(i, seed);
    }
  }
  return tensor;
}

}  // namespace

TEST_CASE("products of cuBLASLt are those of their formula, transposed or not", "[products]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool a_transposed = GENERATE(false, true);
  const bool b_transposed = GENERATE(false, true);
  const auto [m, n, k] = GENERATE(std::tuple{64L, 48L, 32L}, std::tuple{129L, 65L, 17L});
  const auto a = filled(dtype, m * k, 1);
  const auto b = filled(dtype, k * n, 2);
  for (const Write write : {Write::replace, Write::accumulate}) {
    const auto c = filled(DType::f32, m * n, 4);
    kernels::multiply(dtype,
                      Gemm{.m = m,
                           .n = n,
                           .k = k,
                           .a = a.view().data(),
                           .a_transposed = a_transposed,
                           .a_row = a_transposed ? m : k,
                           .b = b.view().data(),
                           .b_transposed = b_transposed,
                           .c = c.view().data(),
                           .c_row = n,
                           .c_dtype = DType::f32,
                           .write = write},
                      {});
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < m * n; ++i) {
      float sum = write == Write::accumulate ? number(i, 4) : 0.0F;
      for (std::int64_t j = 0; j < k; ++j) {
        const std::int64_t row = i / n;
        const std::int64_t column = i % n;
        sum += number(a_transposed ? j * m + row : row * k + j, 1) *
               number(b_transposed ? column * k + j : j * n + column, 2);
      }
      wrong += c.as<float>()[i] == sum ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}
