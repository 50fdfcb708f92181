// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/random_tensor.hpp"

#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/matmul.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <vector>

using namespace fourfold;
using device::Tensor;
using kernels::Write;

namespace {

constexpr device::StreamRef stream;

/// f32: rounding of a sum of at most a few hundred terms in another order. 16 bits: the two bodies
/// differ by one last place where their sums fall on both sides of a middle.
double tolerance(DType dtype) {
  return dtype == DType::f32 ? 2e-6 : test::last_place(dtype);
}

struct Size {
  std::int64_t tokens;
  std::int64_t inputs;
  std::int64_t outputs;
};

}  // namespace

TEST_CASE("products of small integers are exact", "[matmul]") {
  Tensor x(DType::f32, {2, 3});
  Tensor w(DType::f32, {2, 3});
  Tensor bias(DType::f32, {2});
  Tensor y(DType::f32, {2, 2});
  const std::vector<float> x_values{1, 2, 3, 4, 5, 6};
  const std::vector<float> w_values{1, 0, -1, 2, 1, 3};
  std::copy(x_values.begin(), x_values.end(), x.as<float>());
  std::copy(w_values.begin(), w_values.end(), w.as<float>());
  bias.as<float>()[0] = 10;
  bias.as<float>()[1] = 20;
  const std::vector<float> y_expected{8, 33, 8, 51};
  kernels::linear(x, w, bias, y, stream);
  CHECK(std::equal(y_expected.begin(), y_expected.end(), y.as<float>()));
  kernels::reference::linear(x, w, bias, y, stream);
  CHECK(std::equal(y_expected.begin(), y_expected.end(), y.as<float>()));

  Tensor dx(DType::f32, {2, 3});  // y is dy from here on
  const std::vector<float> dx_expected{74, 33, 91, 110, 51, 145};
  kernels::linear_backward_input(y, w, dx, Write::replace, stream);
  CHECK(std::equal(dx_expected.begin(), dx_expected.end(), dx.as<float>()));
  kernels::reference::linear_backward_input(y, w, dx, Write::replace, stream);
  CHECK(std::equal(dx_expected.begin(), dx_expected.end(), dx.as<float>()));

  const std::vector<float> dw_expected{40, 56, 72, 237, 321, 405};
  for (const auto& backward :
       {kernels::linear_backward_weight, kernels::reference::linear_backward_weight}) {
    Tensor dw(DType::f32, {2, 3});
    Tensor dbias(DType::f32, {2});
    backward(x, y, dw, dbias, stream);
    CHECK(std::equal(dw_expected.begin(), dw_expected.end(), dw.as<float>()));
    CHECK(dbias.as<float>()[0] == 16);
    CHECK(dbias.as<float>()[1] == 84);
  }
}

TEST_CASE("products agree with the reference over odd sizes", "[matmul]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t tokens = GENERATE(1, 3, 17, 65, 129);
  const auto [inputs, outputs] = GENERATE(std::pair{1, 1}, std::pair{5, 3}, std::pair{13, 8},
                                          std::pair{64, 33}, std::pair{130, 257});
  CAPTURE(name(dtype), tokens, inputs, outputs);
  const Tensor x = test::random_tensor(dtype, {tokens, inputs}, 1);
  const Tensor w = test::random_tensor(dtype, {outputs, inputs}, 2);
  const Tensor bias = test::random_tensor(dtype, {outputs}, 3);
  const Tensor dy = test::random_tensor(dtype, {tokens, outputs}, 4);

  for (const bool with_bias : {false, true}) {
    Tensor y(dtype, {tokens, outputs});
    Tensor y_expected(dtype, {tokens, outputs});
    const ConstTensorView b = with_bias ? ConstTensorView(bias) : ConstTensorView();
    kernels::linear(x, w, b, y, stream);
    kernels::reference::linear(x, w, b, y_expected, stream);
    CHECK(test::difference(y, y_expected) <= tolerance(dtype));
  }
  for (const Write write : {Write::replace, Write::accumulate}) {
    const Tensor dx = test::random_tensor(dtype, {tokens, inputs}, 5);
    const Tensor dx_expected = test::copy_of(dx);
    kernels::linear_backward_input(dy, w, dx, write, stream);
    kernels::reference::linear_backward_input(dy, w, dx_expected, write, stream);
    CHECK(test::difference(dx, dx_expected) <= tolerance(dtype));
  }
  const Tensor dw = test::random_tensor(DType::f32, {outputs, inputs}, 6);
  const Tensor dw_expected = test::copy_of(dw);
  const Tensor dbias = test::random_tensor(DType::f32, {outputs}, 7);
  const Tensor dbias_expected = test::copy_of(dbias);
  kernels::linear_backward_weight(x, dy, dw, dbias, stream);
  kernels::reference::linear_backward_weight(x, dy, dw_expected, dbias_expected, stream);
  // In f32 whatever the dtype of x and dy.
  CHECK(test::difference(dw, dw_expected) <= tolerance(DType::f32));
  CHECK(test::difference(dbias, dbias_expected) <= tolerance(DType::f32));
}

/// 16 bits: what goes into gelu may be rounded or not, and what comes out is.
TEST_CASE("products with gelu agree with the reference over odd sizes", "[matmul]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t tokens = GENERATE(1, 17, 64, 129);
  const auto [inputs, outputs] =
      GENERATE(std::pair{5, 3}, std::pair{64, 32}, std::pair{64, 33}, std::pair{136, 256});
  CAPTURE(name(dtype), tokens, inputs, outputs);
  const Tensor x = test::random_tensor(dtype, {tokens, inputs}, 1);
  const Tensor w = test::random_tensor(dtype, {outputs, inputs}, 2);
  const Tensor bias = test::random_tensor(dtype, {outputs}, 3);
  const Tensor dy = test::random_tensor(dtype, {tokens, outputs}, 4);
  const Tensor pre_I = test::random_tensor(dtype, {tokens, inputs}, 5);

  for (const bool with_bias : {false, true}) {
    const ConstTensorView b = with_bias ? ConstTensorView(bias) : ConstTensorView();
    Tensor pre[2] = {Tensor(dtype, {tokens, outputs}), Tensor(dtype, {tokens, outputs})};
    Tensor y[2] = {Tensor(dtype, {tokens, outputs}), Tensor(dtype, {tokens, outputs})};
    kernels::linear_gelu(x, w, b, pre[0], y[0], stream);
    kernels::reference::linear_gelu(x, w, b, pre[1], y[1], stream);
    CHECK(test::difference(pre[0], pre[1]) <= tolerance(dtype));
    CHECK(test::difference(y[0], y[1]) <= 2 * tolerance(dtype));
  }
  Tensor dpre[2] = {Tensor(dtype, {tokens, inputs}), Tensor(dtype, {tokens, inputs})};
  kernels::linear_backward_input_gelu(dy, w, pre_I, dpre[0], stream);
  kernels::reference::linear_backward_input_gelu(dy, w, pre_I, dpre[1], stream);
  CHECK(test::difference(dpre[0], dpre[1]) <= 2 * tolerance(dtype));
}

TEST_CASE("in f32 products with gelu are the product and gelu, to the bit", "[matmul]") {
  const Tensor x = test::random_tensor(DType::f32, {65, 64}, 1);
  const Tensor w = test::random_tensor(DType::f32, {48, 64}, 2);
  const Tensor bias = test::random_tensor(DType::f32, {48}, 3);
  Tensor pre[2] = {Tensor(DType::f32, {65, 48}), Tensor(DType::f32, {65, 48})};
  Tensor y[2] = {Tensor(DType::f32, {65, 48}), Tensor(DType::f32, {65, 48})};
  kernels::linear_gelu(x, w, bias, pre[0], y[0], stream);
  kernels::linear(x, w, bias, pre[1], stream);
  kernels::activate(kernels::Activation::gelu_tanh, pre[1], y[1], stream);
  CHECK(test::same_bits(pre[0], pre[1]));
  CHECK(test::same_bits(y[0], y[1]));

  Tensor dpre[2] = {Tensor(DType::f32, {65, 64}), Tensor(DType::f32, {65, 64})};
  kernels::linear_backward_input_gelu(y[0], w, x, dpre[0], stream);
  kernels::linear_backward_input(y[0], w, dpre[1], Write::replace, stream);
  kernels::activate_backward(kernels::Activation::gelu_tanh, dpre[1], x, dpre[1], stream);
  CHECK(test::same_bits(dpre[0], dpre[1]));
}

TEST_CASE("tiles of output features agree with the reference, and leave the others", "[matmul]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t tokens = GENERATE(1, 17, 65);
  const auto [inputs, outputs] = GENERATE(std::pair{5, 3}, std::pair{64, 33}, std::pair{130, 257});
  const std::int64_t all = outputs + 29;
  const std::int64_t first = GENERATE(0, 7, 29);
  CAPTURE(name(dtype), tokens, inputs, outputs, first);
  const Tensor x = test::random_tensor(dtype, {tokens, inputs}, 1);
  const Tensor w = test::random_tensor(dtype, {outputs, inputs}, 2);
  const Tensor bias = test::random_tensor(dtype, {outputs}, 3);
  const Tensor dy = test::random_tensor(dtype, {tokens, all}, 4);

  const Tensor y = test::random_tensor(dtype, {tokens, all}, 5);
  const Tensor y_expected = test::copy_of(y);
  kernels::linear_tile(x, w, bias, y, first, stream);
  kernels::reference::linear_tile(x, w, bias, y_expected, first, stream);
  CHECK(test::difference(y, y_expected) <= tolerance(dtype));

  // f32 sums, whatever the operands: what several tiles add up to.
  for (const DType sum : {dtype, DType::f32}) {
    for (const Write write : {Write::replace, Write::accumulate}) {
      const Tensor dx = test::random_tensor(sum, {tokens, inputs}, 6);
      const Tensor dx_expected = test::copy_of(dx);
      kernels::linear_tile_backward_input(dy, first, w, dx, write, stream);
      kernels::reference::linear_tile_backward_input(dy, first, w, dx_expected, write, stream);
      CHECK(test::difference(dx, dx_expected) <= tolerance(sum));
    }
  }
  const Tensor dw = test::random_tensor(DType::f32, {outputs, inputs}, 7);
  const Tensor dw_expected = test::copy_of(dw);
  const Tensor dbias = test::random_tensor(DType::f32, {outputs}, 8);
  const Tensor dbias_expected = test::copy_of(dbias);
  kernels::linear_tile_backward_weight(x, dy, first, dw, dbias, stream);
  kernels::reference::linear_tile_backward_weight(x, dy, first, dw_expected, dbias_expected,
                                                  stream);
  CHECK(test::difference(dw, dw_expected) <= tolerance(DType::f32));
  CHECK(test::difference(dbias, dbias_expected) <= tolerance(DType::f32));
}

TEST_CASE("no tokens: nothing is touched", "[matmul]") {
  const Tensor x(DType::f32, {0, 5});
  const Tensor w = test::random_tensor(DType::f32, {3, 5}, 1);
  const Tensor y(DType::f32, {0, 3});
  const Tensor dw = test::random_tensor(DType::f32, {3, 5}, 2);
  const Tensor before = test::copy_of(dw);
  kernels::linear(x, w, {}, y, stream);
  kernels::linear_backward_input(y, w, x, Write::replace, stream);
  kernels::linear_backward_weight(x, y, dw, {}, stream);
  const Tensor pre(DType::f32, {0, 3});
  const Tensor pre_I(DType::f32, {0, 5});
  kernels::linear_gelu(x, w, {}, pre, y, stream);
  kernels::linear_backward_input_gelu(y, w, pre_I, x, stream);
  CHECK(test::same_bits(dw, before));
}

TEST_CASE("the same products give the same bits", "[matmul]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const Tensor x = test::random_tensor(dtype, {129, 70}, 1);
  const Tensor dy = test::random_tensor(dtype, {129, 601}, 2);
  Tensor dw[2] = {Tensor(DType::f32, {601, 70}), Tensor(DType::f32, {601, 70})};
  Tensor dbias[2] = {Tensor(DType::f32, {601}), Tensor(DType::f32, {601})};
  const Tensor w = test::random_tensor(dtype, {601, 70}, 3);
  Tensor pre[2] = {Tensor(dtype, {129, 601}), Tensor(dtype, {129, 601})};
  Tensor y[2] = {Tensor(dtype, {129, 601}), Tensor(dtype, {129, 601})};
  for (const int run : {0, 1}) {
    kernels::linear_backward_weight(x, dy, dw[run], dbias[run], stream);
    kernels::linear_gelu(x, w, {}, pre[run], y[run], stream);
  }
  CHECK(test::same_bits(pre[0], pre[1]));
  CHECK(test::same_bits(y[0], y[1]));
  CHECK(test::same_bits(dw[0], dw[1]));
  CHECK(test::same_bits(dbias[0], dbias[1]));
}
