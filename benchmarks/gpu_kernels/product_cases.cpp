// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"
#include "operands.hpp"

#include <fourfold/kernels/matmul.hpp>

#include <fmt/format.h>

#include <array>
#include <cstdint>

namespace fourfold::benchmarks {
namespace {

using device::StreamRef;
using device::Tensor;

/// What a layer's product may do beside: the GELU of its result, or the derivative of that before
/// it.
enum class Gelu : std::uint8_t { none, after, before };

struct Layer {
  const char* name;
  std::int64_t inputs;
  std::int64_t outputs;
  bool has_bias;
  Gelu gelu = Gelu::none;
};

std::array<Layer, linear_layers> layers_of(const ModelShape& model) {
  const bool biases = model.has_biases;  // as GPT-2 has, and GELU
  return {Layer{"qkv", model.hidden, model.qkv, biases},
          Layer{"attention out", model.hidden, model.hidden, biases},
          Layer{"mlp up", model.hidden, model.ffn_up, biases, biases ? Gelu::after : Gelu::none},
          Layer{"mlp down", model.ffn, model.hidden, biases, biases ? Gelu::before : Gelu::none},
          Layer{"head", model.hidden, model.vocab, false}};
}

struct Operands {
  Tensor x, w, bias, y, dx, dw, dbias, pre;
};

}  // namespace

CaseGroup product_roof(const Sizes& sizes) {
  const std::int64_t n = sizes.product;
  const auto one = std::make_shared<Operands>();
  one->x = random_tensor(DType::bf16, {n, n});
  one->w = random_tensor(DType::bf16, {n, n});
  one->y = random_tensor(DType::bf16, {n, n});
  const auto size = static_cast<double>(n);
  return {{"large product", fmt::format("{0}x{0}x{0}", n), Roof::product, 2 * size * size * size, 1,
           [one](int, StreamRef stream) { kernels::linear(one->x, one->w, {}, one->y, stream); }}};
}

CaseGroup product_cases(const ModelShape& model, int layer) {
  const Layer one = layers_of(model)[static_cast<std::size_t>(layer)];
  const std::int64_t rows = model.rows;
  const double bytes = 2.0 * static_cast<double>(rows * (one.inputs + one.outputs));
  const auto all = make_sets(bytes, [&] {
    return Operands{
        random_tensor(DType::bf16, {rows, one.inputs}),
        random_tensor(DType::bf16, {one.outputs, one.inputs}),
        random_tensor(DType::bf16, {one.outputs}),
        random_tensor(DType::bf16, {rows, one.outputs}),
        random_tensor(DType::bf16, {rows, one.inputs}),
        random_tensor(DType::f32, {one.outputs, one.inputs}),
        random_tensor(DType::f32, {one.outputs}),
        one.gelu == Gelu::after ? random_tensor(DType::bf16, {rows, one.outputs}) : Tensor()};
  });
  CaseGroup cases;
  const auto add = [&](const char* pass, std::function<void(const Operands&, StreamRef)> run) {
    cases.push_back(
        {fmt::format("{} {}", one.name, pass),
         fmt::format("{} {}x{}x{}", model.name, rows, one.outputs, one.inputs), Roof::product,
         2.0 * static_cast<double>(rows) * static_cast<double>(one.inputs * one.outputs),
         static_cast<int>(all->size()), [all, run = std::move(run)](int set, StreamRef stream) {
           run((*all)[static_cast<std::size_t>(set)], stream);
         }});
  };
  const bool has_bias = one.has_bias;
  add("forward", [has_bias](const Operands& o, StreamRef stream) {
    kernels::linear(o.x, o.w, has_bias ? ConstTensorView(o.bias) : ConstTensorView(), o.y, stream);
  });
  add("backward input", [](const Operands& o, StreamRef stream) {
    kernels::linear_backward_input(o.y, o.w, o.dx, kernels::Write::replace, stream);
  });
  add("backward weight", [has_bias](const Operands& o, StreamRef stream) {
    kernels::linear_backward_weight(o.x, o.y, o.dw, has_bias ? o.dbias.view() : TensorView(),
                                    stream);
  });
  if (one.gelu == Gelu::after) {
    add("forward gelu", [](const Operands& o, StreamRef stream) {
      kernels::linear_gelu(o.x, o.w, o.bias, o.pre, o.y, stream);
    });
  }
  if (one.gelu == Gelu::before) {
    add("backward input gelu", [](const Operands& o, StreamRef stream) {
      kernels::linear_backward_input_gelu(o.y, o.w, o.x, o.dx, stream);
    });
  }
  return cases;
}

}  // namespace fourfold::benchmarks
