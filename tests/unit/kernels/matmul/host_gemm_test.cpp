// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// The ways in which a CPU makes products of 16-bit numbers.
#include "matmul/gemm.hpp"
#include "vectors/random_tensor.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <functional>
#include <utility>

using namespace fourfold;
using device::Tensor;
using kernels::Write;

namespace {

struct Size {
  std::int64_t tokens;
  std::int64_t inputs;
  std::int64_t outputs;
};

/// A product of 16-bit operands through `body` against the f32 product of the same numbers. Rows of
/// a and c are `gap` elements longer than what takes part; those of c must stay.
void compare_with_f32(const std::function<void(const kernels::Gemm&)>& body, DType dtype,
                      const Size& size, bool a_transposed, bool b_transposed, DType c_dtype,
                      Write write, std::int64_t gap = 0) {
  const auto [m, k, n] = size;
  const std::int64_t a_row = (a_transposed ? m : k) + gap;
  const Shape a_shape{a_transposed ? k : m, a_row};
  const Tensor a = test::random_tensor(dtype, a_shape, 1);
  const Tensor b = test::random_tensor(dtype, {k, n}, 2);
  const Tensor bias = test::random_tensor(dtype, {n}, 3);
  const Tensor c = test::random_tensor(c_dtype, {m, n + gap}, 4);
  Tensor a_f32(DType::f32, a_shape);
  Tensor b_f32(DType::f32, {k, n});
  Tensor bias_f32(DType::f32, {n});
  Tensor c_expected(DType::f32, {m, n + gap});
  for (const auto& [wide, narrow] : {std::pair(&a_f32, &a), std::pair(&b_f32, &b),
                                     std::pair(&bias_f32, &bias), std::pair(&c_expected, &c)}) {
    for (std::int64_t i = 0; i < wide->shape().elements(); ++i) {
      wide->as<float>()[i] = test::element(*narrow, i);
    }
  }
  kernels::Gemm product{.m = m,
                        .n = n,
                        .k = k,
                        .a = a.view().data(),
                        .a_transposed = a_transposed,
                        .a_row = a_row,
                        .b = b.view().data(),
                        .b_transposed = b_transposed,
                        .c = c.view().data(),
                        .c_row = n + gap,
                        .c_dtype = c_dtype,
                        .write = write,
                        .bias_N = write == Write::replace ? bias.view().data() : nullptr};
  body(product);
  product.a = a_f32.view().data();
  product.b = b_f32.view().data();
  product.c = c_expected.view().data();
  product.c_dtype = DType::f32;
  product.bias_N = write == Write::replace ? bias_f32.view().data() : nullptr;
  kernels::f32_product(product);
  CAPTURE(name(dtype), m, k, n, a_transposed, b_transposed, name(c_dtype));
  CAPTURE(static_cast<int>(write), gap);
  CHECK(test::difference(c, c_expected) <=
        (c_dtype == DType::f32 ? 1e-5 : test::last_place(dtype)));
}

}  // namespace

TEST_CASE("widened products agree with f32 across block borders", "[matmul]") {
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  const auto widened = [dtype](const kernels::Gemm& product) {
    kernels::widened_product(dtype, product);
  };
  const Size size = GENERATE(Size{7, 5, 9}, Size{1025, 40, 1030}, Size{33, 2050, 1041});
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      for (const std::int64_t gap : {0, 3}) {
        compare_with_f32(widened, dtype, size, a_transposed, b_transposed, dtype, Write::replace,
                         gap);
        compare_with_f32(widened, dtype, size, a_transposed, b_transposed, DType::f32,
                         Write::accumulate, gap);
      }
    }
  }
}

TEST_CASE("native bf16 products agree with f32", "[matmul]") {
  const Size size = GENERATE(Size{7, 5, 9}, Size{33, 70, 65});
  if (!kernels::has_native_bf16()) {
    SKIP("this CPU has no bf16 instructions, and oneDNN makes no bf16 products for it");
  }
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      for (const Write write : {Write::replace, Write::accumulate}) {
        for (const DType c_dtype : {DType::bf16, DType::f32}) {
          for (const std::int64_t gap : {0, 3}) {
            compare_with_f32(kernels::bf16_product_native, DType::bf16, size, a_transposed,
                             b_transposed, c_dtype, write, gap);
          }
        }
      }
    }
  }
}
