// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "work.hpp"

#include <fourfold/base/philox.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/attention.hpp>
#include <fourfold/kernels/matmul.hpp>

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

namespace fourfold::benchmarks {
namespace {

using device::Tensor;
using TensorPointer = std::shared_ptr<Tensor>;

constexpr std::int64_t layers = 12;
constexpr std::int64_t hidden = 768;
constexpr std::int64_t heads = 12;
constexpr std::int64_t head_dim = 64;
constexpr std::int64_t vocabulary = 50257;

constexpr device::StreamRef stream;

/// Never zeros: they make products faster than real numbers do.
TensorPointer random_tensor(DType dtype, Shape shape) {
  auto x = std::make_shared<Tensor>(dtype, shape);
  const PhiloxKey key = philox_key(1, RandomUse::test);
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const float value = uniform_float(philox(key, static_cast<std::uint64_t>(i)).word[0]) - 0.5F;
    if (dtype == DType::bf16) {
      x->as<BFloat16>()[i] = BFloat16(value);
    } else {
      x->as<float>()[i] = value;
    }
  }
  return x;
}

void add_layer(std::vector<Work>& all, const std::string& name, DType dtype, std::int64_t tokens,
               std::int64_t inputs, std::int64_t outputs, bool has_bias, int per_step) {
  const auto x = random_tensor(dtype, {tokens, inputs});
  const auto w = random_tensor(dtype, {outputs, inputs});
  const auto bias = has_bias ? random_tensor(dtype, {outputs}) : std::make_shared<Tensor>();
  const auto y = random_tensor(dtype, {tokens, outputs});
  const auto dx = std::make_shared<Tensor>(dtype, Shape{tokens, inputs});
  const auto dw = std::make_shared<Tensor>(DType::f32, Shape{outputs, inputs});
  const auto dbias =
      has_bias ? std::make_shared<Tensor>(DType::f32, Shape{outputs}) : std::make_shared<Tensor>();
  const double flop = 2.0 * static_cast<double>(tokens * inputs * outputs);
  const std::string shape = fmt::format("{}x{}x{}", tokens, outputs, inputs);
  const auto add = [&](const char* pass, std::function<void()> run) {
    all.push_back({.name = name + " " + pass,
                   .shape = shape,
                   .flop = flop,
                   .per_step = per_step,
                   .run = std::move(run)});
  };
  const ConstTensorView bias_O = has_bias ? ConstTensorView(*bias) : ConstTensorView();
  const TensorView dbias_O = has_bias ? dbias->view() : TensorView();
  const auto y_kept = y;
  add("forward", [=] { kernels::linear(*x, *w, bias_O, *y_kept, stream); });
  add("backward input",
      [=] { kernels::linear_backward_input(*y, *w, *dx, kernels::Write::replace, stream); });
  // bias and dbias are kept here: all the work of a layer is destroyed together.
  add("backward weight", [=] {
    static_cast<void>(bias);
    static_cast<void>(dbias);
    kernels::linear_backward_weight(*x, *y, *dw, dbias_O, stream);
  });
}

/// Query, key or value inside the fused rows [tokens, 3 * hidden].
template <class Pointer>
kernels::BasicHeads<Pointer> part_of(const TensorPointer& fused, int part, std::int64_t tokens) {
  auto* data = static_cast<std::byte*>(fused->view().data());
  const DType dtype = fused->view().dtype();
  return {data + static_cast<std::size_t>(part * hidden) * size_in_bytes(dtype), dtype,
          tokens * 3 * hidden, 3 * hidden};
}

template <class Pointer>
kernels::BasicHeads<Pointer> whole(const TensorPointer& x, std::int64_t tokens) {
  return {x->view().data(), x->view().dtype(), tokens * hidden, hidden};
}

}  // namespace

std::vector<Work> products(DType dtype, std::int64_t tokens) {
  std::vector<Work> all;
  add_layer(all, "qkv", dtype, tokens, hidden, 3 * hidden, true, layers);
  add_layer(all, "attention out", dtype, tokens, hidden, hidden, true, layers);
  add_layer(all, "mlp up", dtype, tokens, hidden, 4 * hidden, true, layers);
  add_layer(all, "mlp down", dtype, tokens, 4 * hidden, hidden, true, layers);
  add_layer(all, "logits", dtype, tokens, hidden, vocabulary, false, 1);
  return all;
}

std::vector<Work> attentions(DType dtype, std::int64_t batch, std::int64_t tokens) {
  const kernels::AttentionShape shape{.batch = batch,
                                      .query_tokens = tokens,
                                      .key_tokens = tokens,
                                      .heads = heads,
                                      .kv_heads = heads,
                                      .head_dim = head_dim,
                                      .scale = 1.0F / std::sqrt(static_cast<float>(head_dim))};
  const auto qkv = random_tensor(dtype, {batch * tokens, 3 * hidden});
  const auto dqkv = std::make_shared<Tensor>(dtype, Shape{batch * tokens, 3 * hidden});
  const auto out = random_tensor(dtype, {batch * tokens, hidden});
  const auto dout = random_tensor(dtype, {batch * tokens, hidden});
  const auto lse = std::make_shared<Tensor>(DType::f32, Shape{batch, heads, tokens});
  const auto delta = std::make_shared<Tensor>(DType::f32, Shape{batch, heads, tokens});
  const double pairs = static_cast<double>(batch * heads * (tokens * (tokens + 1) / 2));
  const double flop_per_product = 2.0 * pairs * head_dim;
  const std::string label = fmt::format("{}x{}", batch, tokens);
  using kernels::ConstHeads;
  using kernels::Heads;
  const auto part = part_of<const void*>;
  const auto gradient = part_of<void*>;
  return {{.name = "attention forward",
           .shape = label,
           .flop = 2 * flop_per_product,
           .per_step = layers,
           .is_product = false,
           .run =
               [=] {
                 kernels::attention(shape, part(qkv, 0, tokens), part(qkv, 1, tokens),
                                    part(qkv, 2, tokens), whole<void*>(out, tokens),
                                    lse->as<float>(), stream);
               }},
          {.name = "attention backward",
           .shape = label,
           .flop = 5 * flop_per_product,
           .per_step = layers,
           .is_product = false,
           .run = [=] {
             kernels::attention_backward(
                 shape, part(qkv, 0, tokens), part(qkv, 1, tokens), part(qkv, 2, tokens),
                 whole<const void*>(out, tokens), whole<const void*>(dout, tokens),
                 lse->as<float>(), delta->as<float>(), gradient(dqkv, 0, tokens),
                 gradient(dqkv, 1, tokens), gradient(dqkv, 2, tokens), stream);
           }}};
}

}  // namespace fourfold::benchmarks
