// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/tensors.hpp"

#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/dropout.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace {

using namespace fourfold;
using namespace fourfold::kernels;
using namespace fourfold::kernels::test;

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

}  // namespace

TEST_CASE("activations equal their references", "[activation]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const double allowed = tolerance(dtype);
  for (const std::int64_t rows : odd_rows) {
    for (const std::int64_t features : odd_features) {
      CAPTURE(name(dtype), rows, features);
      const Shape shape{rows, features};
      const device::Tensor x = random_tensor(dtype, shape, 1, 3.0);
      const device::Tensor dy = random_tensor(dtype, shape, 2);
      const device::Tensor gate_up = random_tensor(dtype, {rows, 2 * features}, 3, 3.0);
      device::Tensor fast(dtype, shape);
      device::Tensor plain(dtype, shape);
      for (const Activation kind : {Activation::gelu_tanh, Activation::silu}) {
        CAPTURE(name(kind));
        activate(kind, x, fast, {});
        reference::activate(kind, x, plain, {});
        CHECK(worst_error(fast, plain, 1e-3) <= allowed);
        activate_backward(kind, dy, x, fast, {});
        reference::activate_backward(kind, dy, x, plain, {});
        CHECK(worst_error(fast, plain, 1.0) <= allowed);
        activate_gated(kind, gate_up, fast, {});
        reference::activate_gated(kind, gate_up, plain, {});
        CHECK(worst_error(fast, plain, 1e-3) <= allowed);
        device::Tensor dfast(dtype, {rows, 2 * features});
        device::Tensor dplain(dtype, {rows, 2 * features});
        activate_gated_backward(kind, dy, gate_up, dfast, {});
        reference::activate_gated_backward(kind, dy, gate_up, dplain, {});
        CHECK(worst_error(dfast, dplain, 1.0) <= allowed);
      }
      add(x, dy, fast, {});
      reference::add(x, dy, plain, {});
      CHECK(same_bits(fast, plain));
    }
  }
}

// torch.nn.functional.activate(Activation::gelu_tanh, x, approximate="tanh") and silu(x) in double,
// to nine digits.
TEST_CASE("activations give PyTorch's numbers", "[activation]") {
  device::Tensor x(DType::f32, {6});
  const float inputs[] = {-10.0F, -1.0F, 0.0F, 0.5F, 1.0F, 10.0F};
  std::copy_n(inputs, 6, x.as<float>());
  device::Tensor y(DType::f32, {6});
  const double gelus[] = {0, -0.158808009, 0, 0.345714010, 0.841191991, 10};
  const double silus[] = {-4.539786870e-4, -0.268941421, 0, 0.311229666, 0.731058579, 9.999546021};
  activate(Activation::gelu_tanh, x, y, {});
  for (int i = 0; i < 6; ++i) {
    CHECK(std::fabs(static_cast<double>(y.as<float>()[i]) - gelus[i]) <= 1e-7 * (1 + gelus[i]));
  }
  activate(Activation::silu, x, y, {});
  for (int i = 0; i < 6; ++i) {
    CHECK(std::fabs(static_cast<double>(y.as<float>()[i]) - silus[i]) <=
          2e-7 * (1 + std::fabs(silus[i])));
  }
  device::Tensor gate_up(DType::f32, {6, 2});
  for (int i = 0; i < 6; ++i) {
    gate_up.as<float>()[2 * i] = inputs[i];
    gate_up.as<float>()[2 * i + 1] = 2.0F;
  }
  activate_gated(Activation::silu, gate_up, y.view().reshape({6, 1}), {});
  for (int i = 0; i < 6; ++i) {
    CHECK(std::fabs(static_cast<double>(y.as<float>()[i]) - 2 * silus[i]) <=
          4e-7 * (1 + std::fabs(silus[i])));
  }
  activate_gated(Activation::gelu_tanh, gate_up, y.view().reshape({6, 1}), {});
  for (int i = 0; i < 6; ++i) {
    CHECK(std::fabs(static_cast<double>(y.as<float>()[i]) - 2 * gelus[i]) <=
          4e-7 * (1 + std::fabs(gelus[i])));
  }
}

TEST_CASE("activations saturate without NaN", "[activation]") {
  device::Tensor x(DType::f32, {4});
  const float inputs[] = {-3e4F, -100.0F, 100.0F, 3e4F};
  std::copy_n(inputs, 4, x.as<float>());
  device::Tensor dy(DType::f32, {4});
  std::fill_n(dy.as<float>(), 4, 1.0F);
  device::Tensor y(DType::f32, {4});
  const auto check = [&](float low, float high) {
    CHECK(y.as<float>()[0] == low);
    CHECK(y.as<float>()[1] == low);
    CHECK(y.as<float>()[2] == (high == 0 ? inputs[2] : high));
    CHECK(y.as<float>()[3] == (high == 0 ? inputs[3] : high));
  };
  activate(Activation::gelu_tanh, x, y, {});
  check(0, 0);
  activate_backward(Activation::gelu_tanh, dy, x, y, {});
  check(0, 1);
  activate(Activation::silu, x, y, {});  // x e^x has a little left where gelu has nothing
  const std::vector<double> silus = values(y);
  CHECK(std::abs(silus[0]) < 1e-30);
  CHECK(std::abs(silus[1]) < 1e-30);
  CHECK(silus[2] == 100);
  CHECK(silus[3] == 3e4);
}

// bf16 results are rounded without a look for NaN; a chunk and a part of one both count.
TEST_CASE("activations of NaN are NaN", "[activation]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  constexpr std::int64_t count = 67;
  for (const double sign : {1.0, -1.0}) {
    for (const std::int64_t at : {0, 33, 66}) {
      CAPTURE(name(dtype), sign, at);
      const device::Tensor x = random_tensor(dtype, {2, 2 * count}, 1);
      const device::Tensor dy = random_tensor(dtype, {2, count}, 2);
      write_element(x.view(), at, std::copysign(std::nan(""), sign));
      const auto check_nan = [at](const device::Tensor& y, std::int64_t elements) {
        for (std::int64_t i = 0; i < elements; ++i) {
          REQUIRE(std::isnan(read_element(y, i)) == (i == at));
        }
      };
      device::Tensor y(dtype, {2, 2 * count});
      activate(Activation::gelu_tanh, x, y, {});
      check_nan(y, 4 * count);
      activate_backward(Activation::gelu_tanh, x, x, y, {});
      check_nan(y, 4 * count);
      add(x, x, y, {});
      check_nan(y, 4 * count);
      device::Tensor product(dtype, {2, count});
      activate_gated(Activation::silu, x, product, {});
      check_nan(product, 2 * count);
      activate_gated_backward(Activation::silu, dy, x, y, {});
      CHECK(std::isnan(read_element(y, at)));
      CHECK(std::isnan(read_element(y, at + count)));
    }
  }
}

TEST_CASE("activation gradients equal finite differences in double", "[activation]") {
  const device::Tensor x = random_tensor(DType::f32, {3, 14}, 1, 2.0);
  const device::Tensor dy = random_tensor(DType::f32, {3, 14}, 2);
  const std::vector<double> upstream = values(dy);
  device::Tensor dx(DType::f32, {3, 14});
  activate_backward(Activation::gelu_tanh, dy, x, dx, {});
  CHECK(worst_error(dx, finite_differences(values(x), [&](const std::vector<double>& v) {
                      double loss = 0;
                      for (std::size_t i = 0; i < v.size(); ++i) {
                        const double u =
                            std::sqrt(2 / M_PI) * (v[i] + 0.044715 * std::pow(v[i], 3));
                        loss += upstream[i] * 0.5 * v[i] * (1 + std::tanh(u));
                      }
                      return loss;
                    })) <= 1e-6);
  activate_gated_backward(Activation::silu, dy.view().reshape({6, 7}).rows(0, 3), x, dx, {});
  CHECK(worst_error(dx, finite_differences(values(x), [&](const std::vector<double>& v) {
                      double loss = 0;
                      for (std::size_t i = 0; i < 21; ++i) {
                        const std::size_t gate = i / 7 * 14 + i % 7;
                        loss += upstream[i] * v[gate] * sigmoid(v[gate]) * v[gate + 7];
                      }
                      return loss;
                    })) <= 1e-6);
}

TEST_CASE("activations work in place and cut anywhere with the same bits", "[activation]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  constexpr std::int64_t count = 10007;
  const device::Tensor x = random_tensor(dtype, {count}, 1, 2.0);
  const device::Tensor dy = random_tensor(dtype, {count}, 2);
  device::Tensor y(dtype, {count});
  device::Tensor dx(dtype, {count});
  device::Tensor sum(dtype, {count});
  activate(Activation::gelu_tanh, x, y, {});
  activate_backward(Activation::gelu_tanh, dy, x, dx, {});
  add(x, dy, sum, {});
  device::Tensor y_cut(dtype, {count});
  const device::Tensor dx_in_place = copy_of(dy);
  const device::Tensor sum_in_place = copy_of(x);
  for (const auto& [first, length] :
       {std::pair<std::int64_t, std::int64_t>{5003, 5004}, {4099, 904}, {0, 1}, {1, 4098}}) {
    const auto part = [from = first, rows = length](const device::Tensor& tensor) {
      return tensor.view().rows(from, rows);
    };
    activate(Activation::gelu_tanh, part(x), part(y_cut), {});
    activate_backward(Activation::gelu_tanh, part(dx_in_place), part(x), part(dx_in_place), {});
    add(part(sum_in_place), part(dy), part(sum_in_place), {});
  }
  CHECK(same_bits(y, y_cut));
  CHECK(same_bits(dx, dx_in_place));
  CHECK(same_bits(sum, sum_in_place));

  const device::Tensor gate_up = random_tensor(dtype, {17, 258}, 3);
  const device::Tensor dy_TF = random_tensor(dtype, {17, 129}, 4);
  device::Tensor gradient(dtype, {17, 258});
  activate_gated_backward(Activation::silu, dy_TF, gate_up, gradient, {});
  const device::Tensor in_place = copy_of(gate_up);
  for (const std::int64_t row : {16, 0}) {
    const std::int64_t rows = row == 0 ? 16 : 1;
    activate_gated_backward(Activation::silu, dy_TF.view().rows(row, rows),
                            in_place.view().rows(row, rows), in_place.view().rows(row, rows), {});
  }
  CHECK(same_bits(gradient, in_place));
}

// Rows of whole packs that begin between two, and with `aside` = 0 at one.
TEST_CASE("activations give rows at any address the same bits", "[activation]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  constexpr std::int64_t rows = 5;
  constexpr std::int64_t features = 64;
  const device::Tensor sample(DType::i64, {rows});
  const device::Tensor position(DType::i32, {rows});
  const auto results = [&](std::int64_t aside) {
    const auto moved = [&](const device::Tensor& tensor, std::int64_t columns) {
      return tensor.view().rows(aside, rows * columns).reshape({rows, columns});
    };
    const auto drawn = [&](std::int64_t columns, std::uint64_t stream) {
      device::Tensor tensor(dtype, {rows * columns + 3});
      std::memcpy(moved(tensor, columns).data(),
                  random_tensor(dtype, {rows, columns}, stream).view().data(),
                  static_cast<std::size_t>(rows * columns) * size_in_bytes(dtype));
      return tensor;
    };
    const device::Tensor gate_up = drawn(2 * features, 1);
    const device::Tensor dy = drawn(features, 2);
    const device::Tensor y(dtype, {rows * features + 3});
    const device::Tensor dropped(dtype, {rows * features + 3});
    const device::Tensor gradient(dtype, {rows * 2 * features + 3});
    activate_gated(Activation::silu, moved(gate_up, 2 * features), moved(y, features), {});
    activate_gated_backward(Activation::silu, moved(dy, features), moved(gate_up, 2 * features),
                            moved(gradient, 2 * features), {});
    dropout_add({.seed = 5, .step = 7, .probability = 0.5F}, moved(dy, features),
                moved(y, features), sample, position, moved(dropped, features), {});
    std::vector<device::Tensor> copies;
    copies.push_back(copy_of(moved(y, features)));
    copies.push_back(copy_of(moved(gradient, 2 * features)));
    copies.push_back(copy_of(moved(dropped, features)));
    return copies;
  };
  const std::vector<device::Tensor> at_packs = results(0);
  for (const std::int64_t aside : {1, 2, 3}) {
    const std::vector<device::Tensor> between = results(aside);
    for (std::size_t i = 0; i < at_packs.size(); ++i) {
      CAPTURE(name(dtype), aside, i);
      CHECK(same_bits(at_packs[i], between[i]));
    }
  }
}
