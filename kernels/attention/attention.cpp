// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "attention_backend.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/device.hpp>

#include <limits>

namespace fourfold::kernels {

namespace {

void expect_shape(const AttentionShape& shape) {
  FOURFOLD_EXPECT(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0);
  FOURFOLD_EXPECT(shape.head_dim > 0 && shape.head_dim <= most_head_dim());
}

/// A result is kept as the operands are, or in f32.
bool is_result_of(DType operands, DType result) {
  return result == operands || result == DType::f32;
}

void expect_gradients(const AttentionGradients& with) {
  expect_shape(with.shape);
  const DType dtype = with.q.dtype;
  FOURFOLD_EXPECT(dtype == with.k.dtype && dtype == with.v.dtype && dtype == with.dout.dtype);
  FOURFOLD_EXPECT(is_result_of(dtype, with.dq.dtype) && is_result_of(dtype, with.dk.dtype) &&
                  is_result_of(dtype, with.dv.dtype));
  FOURFOLD_EXPECT(with.write_dq == Write::replace || with.dq.dtype == DType::f32);
  FOURFOLD_EXPECT(with.write_dkv == Write::replace ||
                  (with.dk.dtype == DType::f32 && with.dv.dtype == DType::f32));
}

void attend_if_any(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v, Heads out,
                   float* lse_BNT, bool merges, device::StreamRef stream) {
  expect_shape(shape);
  FOURFOLD_EXPECT(q.dtype == k.dtype && q.dtype == v.dtype && is_result_of(q.dtype, out.dtype));
  if (shape.batch * shape.heads * shape.query_tokens > 0) {
    attend(shape, q, k, v, out, lse_BNT, merges, stream);
  }
}

}  // namespace

std::int64_t most_head_dim() noexcept {
  return device::has_own_memory ? most_device_head_dim : std::numeric_limits<std::int64_t>::max();
}

void attention(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v, Heads out,
               float* lse_BNT, device::StreamRef stream) {
  attend_if_any(shape, q, k, v, out, lse_BNT, false, stream);
}

void attention_merge(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                     Heads out, float* lse_BNT, device::StreamRef stream) {
  FOURFOLD_EXPECT(out.dtype == DType::f32);
  attend_if_any(shape, q, k, v, out, lse_BNT, true, stream);
}

void attention_delta(const AttentionShape& shape, ConstHeads out, ConstHeads dout, float* delta_BNT,
                     device::StreamRef stream) {
  expect_shape(shape);
  FOURFOLD_EXPECT(is_result_of(dout.dtype, out.dtype));
  sum_attention_delta(shape, out, dout, delta_BNT, stream);
}

void attention_backward_part(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                             ConstHeads out, ConstHeads dout, const float* lse_BNT,
                             const float* delta_BNT, Heads dq, Write write_dq, Heads dk, Heads dv,
                             Write write_dkv, device::StreamRef stream) {
  const AttentionGradients with{shape,     q,  k,        v,  out, dout,     lse_BNT,
                                delta_BNT, dq, write_dq, dk, dv,  write_dkv};
  expect_gradients(with);
  differentiate_attention_part(with, stream);
}

void attention_backward(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                        ConstHeads out, ConstHeads dout, const float* lse_BNT, float* delta_BNT,
                        Heads dq, Heads dk, Heads dv, device::StreamRef stream) {
  FOURFOLD_EXPECT(is_result_of(dout.dtype, out.dtype));
  const AttentionGradients with{
      shape, q, k, v, out, dout, lse_BNT, delta_BNT, dq, Write::replace, dk, dv, Write::replace};
  expect_gradients(with);
  differentiate_attention(with, delta_BNT, stream);
}

}  // namespace fourfold::kernels
