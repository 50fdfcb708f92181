// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Rows of attention against the kernels of this build (which tests/golden holds against PyTorch),
/// on more tokens than are looked at, with grouped heads and keys of which not all are seen.
#include "verify/attention_rows.hpp"

#include <fourfold/base/philox.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/kernels/attention.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

using namespace fourfold;
using kernels::AttentionShape;

namespace {

constexpr PhiloxKey key{17, 4};
constexpr double tolerance = 8;  // train::Tolerances::product

/// Heads in memory that host and device reach.
class Heads {
 public:
  Heads(const AttentionShape& shape, std::int64_t tokens, std::int64_t heads, DType dtype,
        std::uint64_t salt)
      : tensor_(dtype, {shape.batch, tokens, heads * shape.head_dim}) {
    for (std::int64_t i = 0; salt > 0 && i < tensor_.view().elements(); ++i) {
      put(i, normal_float(philox_key(salt, RandomUse::test), static_cast<std::uint64_t>(i)));
    }
  }

  kernels::Heads view() const {
    const TensorView all = tensor_.view();
    return {all.data(), all.dtype(), all.dim(1) * all.dim(2), all.dim(2)};
  }
  kernels::ConstHeads read() const {
    const kernels::Heads all = view();
    return {all.data, all.dtype, all.batch_stride, all.token_stride};
  }
  train::HostHeads host() const {
    std::vector<float> values;
    for (std::int64_t i = 0; i < tensor_.view().elements(); ++i) {
      values.push_back(get(i));
    }
    const kernels::Heads all = view();
    return {values, all.dtype, all.batch_stride, all.token_stride};
  }

 private:
  float get(std::int64_t i) const {
    const TensorView all = tensor_.view();
    return all.dtype() == DType::bf16 ? static_cast<float>(all.as<BFloat16>()[i])
                                      : all.as<float>()[i];
  }
  void put(std::int64_t i, float value) {
    const TensorView all = tensor_.view();
    if (all.dtype() == DType::bf16) {
      all.as<BFloat16>()[i] = BFloat16(value);
    } else {
      all.as<float>()[i] = value;
    }
  }

  device::Tensor tensor_;
};

/// Doubles a feature of all tokens.
void double_feature(train::HostHeads& heads, std::int64_t feature) {
  for (auto i = static_cast<std::size_t>(feature); i < heads.values.size();
       i += static_cast<std::size_t>(heads.token_stride)) {
    heads.values[i] *= 2;
  }
}

}  // namespace

TEST_CASE("rows of attention pass as the kernels make them, and not otherwise",
          "[attention_rows]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  AttentionShape shape;
  shape.batch = 2;
  shape.query_tokens = 70;
  shape.key_tokens = GENERATE(70, 150);
  shape.query_offset = shape.key_tokens - 75;  // the last keys are seen by nobody
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 6;
  // With the others one key has all of the attention, and a score is rounded by whole numbers.
  shape.scale = GENERATE(0.4F, 1e3F, 4e7F);
  const device::StreamRef stream;
  const Heads q(shape, shape.query_tokens, 4, dtype, 1);
  const Heads k(shape, shape.key_tokens, 2, dtype, 2);
  const Heads v(shape, shape.key_tokens, 2, dtype, 3);
  const Heads dout(shape, shape.query_tokens, 4, dtype, 4);
  const Heads out(shape, shape.query_tokens, 4, dtype, 0);
  const Heads dq(shape, shape.query_tokens, 4, dtype, 0);
  const Heads dk(shape, shape.key_tokens, 2, dtype, 0);
  const Heads dv(shape, shape.key_tokens, 2, dtype, 0);
  const device::Tensor lse(DType::f32, {2, 4, 70});
  const device::Tensor delta(DType::f32, {2, 4, 70});
  kernels::attention(shape, q.read(), k.read(), v.read(), out.view(), lse.view().as<float>(),
                     stream);
  kernels::attention_backward(shape, q.read(), k.read(), v.read(), out.read(), dout.read(),
                              lse.view().as<float>(), delta.view().as<float>(), dq.view(),
                              dk.view(), dv.view(), stream);
  stream.synchronize();
  const float* const sums = lse.view().as<float>();
  const std::vector<float> lse_BNT(sums, sums + 2 * 4 * 70);
  const double softmax = device::has_own_memory && dtype != DType::f32 ? 0x1p-8 : 0;
  CAPTURE(name(dtype), shape.key_tokens, shape.scale);

  const train::HostAttention made{.shape = shape,
                                  .q = q.host(),
                                  .k = k.host(),
                                  .v = v.host(),
                                  .out = out.host(),
                                  .lse_BNT = lse_BNT,
                                  .out_before = {},
                                  .lse_before_BNT = {},
                                  .softmax_roundoff = softmax};
  CHECK(check_attention(made, key).error < tolerance);
  const bool is_usual = shape.scale < 1;
  train::HostAttention other = made;
  if (is_usual) {
    double_feature(other.out, 13);
    CHECK(check_attention(other, key).place.starts_with("feature 1 of head 2, "));
    other = made;
  }
  ++other.shape.query_offset;
  CHECK(check_attention(other, key).error > tolerance);
  other = made;
  for (float& sum : other.lse_BNT) {
    sum += is_usual ? 1e-4F : 1e-4F * std::fabs(sum);
  }
  CHECK(check_attention(other, key).error > tolerance);

  const train::HostAttention gradient{.shape = shape,
                                      .q = q.host(),
                                      .k = k.host(),
                                      .v = v.host(),
                                      .dout = dout.host(),
                                      .out = out.host(),
                                      .lse_BNT = lse_BNT,
                                      .delta_BNT = {},
                                      .dq = dq.host(),
                                      .dk = dk.host(),
                                      .dv = dv.host(),
                                      .dq_before = {},
                                      .dk_before = {},
                                      .dv_before = {},
                                      .softmax_roundoff = softmax};
  CHECK(check_attention_gradient(gradient, key).error < tolerance);
  if (!is_usual) {
    return;
  }
  train::HostAttention wrong = gradient;
  double_feature(wrong.dq, 13);
  CHECK(check_attention_gradient(wrong, key).place.starts_with("query gradient 1 of head 2, "));
  wrong = gradient;
  double_feature(wrong.dk, 8);
  CHECK(check_attention_gradient(wrong, key).place.starts_with("key gradient 2 of head 1, "));
  wrong = gradient;
  double_feature(wrong.dv, 8);
  CHECK(check_attention_gradient(wrong, key).place.starts_with("value gradient 2 of head 1, "));
}

TEST_CASE("attention merged with that to other keys is that to both", "[attention_rows]") {
  AttentionShape shape;
  shape.batch = 1;
  shape.query_tokens = 9;
  shape.key_tokens = 5;
  shape.heads = shape.kv_heads = 2;
  shape.head_dim = 4;
  shape.causal = false;
  const device::StreamRef stream;
  const Heads q(shape, 9, 2, DType::f32, 1);
  const Heads k(shape, 5, 2, DType::f32, 2);
  const Heads v(shape, 5, 2, DType::f32, 3);
  const Heads out(shape, 9, 2, DType::f32, 0);
  const device::Tensor lse(DType::f32, {1, 2, 9});
  float* const sums = lse.view().as<float>();
  const auto lse_now = [&] { return std::vector<float>(sums, sums + 18); };
  kernels::attention(shape, q.read(), k.read(), v.read(), out.view(), sums, stream);
  stream.synchronize();
  train::HostAttention made{.shape = shape,
                            .q = q.host(),
                            .k = k.host(),
                            .v = v.host(),
                            .out = {},
                            .lse_BNT = {},
                            .out_before = out.host(),
                            .lse_before_BNT = lse_now()};
  kernels::attention_merge(shape, q.read(), k.read(), v.read(), out.view(), sums, stream);
  stream.synchronize();
  made.out = out.host();
  made.lse_BNT = lse_now();
  CHECK(check_attention(made, key).error < tolerance);
  made.lse_before_BNT[5] += 0.01F;
  CHECK(check_attention(made, key).error > tolerance);
}
