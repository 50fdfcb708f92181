// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"
#include "operands.hpp"

#include <fourfold/kernels/attention.hpp>

#include <fmt/format.h>

#include <cmath>

namespace fourfold::benchmarks {
namespace {

using device::StreamRef;
using device::Tensor;
using kernels::ConstHeads;
using kernels::Heads;

/// Rows of the fused product: query, key and value heads of a token; and their gradients.
struct Operands {
  Tensor qkv, out, dout, dqkv, lse, delta;
};

/// Where heads lie in rows of so many features, from a feature on.
template <class AnyHeads>
AnyHeads heads_in(const Tensor& rows, const AttentionSize& size, std::int64_t first_head) {
  const std::int64_t features = rows.shape()[1];
  auto* const data = static_cast<std::byte*>(rows.view().data()) +
                     first_head * size.head_dim * static_cast<std::int64_t>(sizeof(BFloat16));
  return {data, DType::bf16, size.tokens * features, features};
}

void run_forward(const kernels::AttentionShape& shape, const AttentionSize& size, const Operands& o,
                 StreamRef stream) {
  kernels::attention(shape, heads_in<ConstHeads>(o.qkv, size, 0),
                     heads_in<ConstHeads>(o.qkv, size, size.heads),
                     heads_in<ConstHeads>(o.qkv, size, size.heads + size.kv_heads),
                     heads_in<Heads>(o.out, size, 0), o.lse.as<float>(), stream);
}

void run_backward(const kernels::AttentionShape& shape, const AttentionSize& size,
                  const Operands& o, StreamRef stream) {
  kernels::attention_backward(
      shape, heads_in<ConstHeads>(o.qkv, size, 0), heads_in<ConstHeads>(o.qkv, size, size.heads),
      heads_in<ConstHeads>(o.qkv, size, size.heads + size.kv_heads),
      heads_in<ConstHeads>(o.out, size, 0), heads_in<ConstHeads>(o.dout, size, 0),
      o.lse.as<float>(), o.delta.as<float>(), heads_in<Heads>(o.dqkv, size, 0),
      heads_in<Heads>(o.dqkv, size, size.heads),
      heads_in<Heads>(o.dqkv, size, size.heads + size.kv_heads), stream);
}

}  // namespace

CaseGroup attention_cases(const AttentionSize& size) {
  const std::int64_t rows = size.batch * size.tokens;
  const std::int64_t fused = (size.heads + 2 * size.kv_heads) * size.head_dim;
  const std::int64_t wide = size.heads * size.head_dim;
  const Shape per_query{size.batch, size.heads, size.tokens};
  const auto all = make_sets(2.0 * static_cast<double>(rows * (fused + wide)), [&] {
    return Operands{
        random_tensor(DType::bf16, {rows, fused}), random_tensor(DType::bf16, {rows, wide}),
        random_tensor(DType::bf16, {rows, wide}), random_tensor(DType::bf16, {rows, fused}),
        // Large, as sums of exponentials are: probabilities stay below 1.
        random_tensor(DType::f32, per_query, 7.0F, 8.0F), random_tensor(DType::f32, per_query)};
  });
  const kernels::AttentionShape shape{.batch = size.batch,
                                      .query_tokens = size.tokens,
                                      .key_tokens = size.tokens,
                                      .heads = size.heads,
                                      .kv_heads = size.kv_heads,
                                      .head_dim = size.head_dim,
                                      .scale = 1.0F / std::sqrt(static_cast<float>(size.head_dim))};
  // Only pairs that see each other count; the backward pass has five products for two.
  const double pairs = static_cast<double>(size.batch * size.heads) *
                       static_cast<double>(size.tokens * (size.tokens + 1) / 2);
  const double product = 2 * pairs * static_cast<double>(size.head_dim);
  const std::string label = fmt::format("{}x{}, {}/{} heads of {}", size.batch, size.tokens,
                                        size.heads, size.kv_heads, size.head_dim);
  const int sets = static_cast<int>(all->size());
  return {{"attention", label, Roof::product, 2 * product, sets,
           [=](int set, StreamRef stream) {
             run_forward(shape, size, (*all)[static_cast<std::size_t>(set)], stream);
           }},
          {"attention_backward", label, Roof::product, 5 * product, sets,
           [=](int set, StreamRef stream) {
             run_backward(shape, size, (*all)[static_cast<std::size_t>(set)], stream);
           }}};
}

}  // namespace fourfold::benchmarks
