// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vectors/random_tensor.hpp"

#include <fourfold/kernels/attention.hpp>

#include <cmath>
#include <ostream>

namespace fourfold::test {

struct AttentionSize {
  std::int64_t batch;
  std::int64_t query_tokens;
  std::int64_t key_tokens;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  bool causal = true;
  std::int64_t query_offset = 0;

  friend std::ostream& operator<<(std::ostream& out, const AttentionSize& s) {
    return out << "B" << s.batch << " Tq" << s.query_tokens << " Tk" << s.key_tokens << " N"
               << s.heads << " K" << s.kv_heads << " H" << s.head_dim
               << (s.causal ? " causal" : " full") << " offset " << s.query_offset;
  }
};

/// Random operands of one attention, as a fused query/key/value product leaves them: heads inside
/// wider rows, with a few elements of something else at both ends.
class AttentionCase {
 public:
  static constexpr std::int64_t margin = 3;

  AttentionCase(const AttentionSize& s, DType dtype, std::uint64_t seed = 1)
      : shape{.batch = s.batch,
              .query_tokens = s.query_tokens,
              .key_tokens = s.key_tokens,
              .heads = s.heads,
              .kv_heads = s.kv_heads,
              .head_dim = s.head_dim,
              .scale = 1.5F / std::sqrt(static_cast<float>(s.head_dim)),
              .causal = s.causal,
              .query_offset = s.query_offset},
        dtype_(dtype),
        q(queries(seed)),
        k(keys(seed + 1)),
        v(keys(seed + 2)),
        dout(queries(seed + 3)) {}

  device::Tensor queries(std::uint64_t seed) const {
    return random_tensor(
        dtype_, {shape.batch, shape.query_tokens, shape.heads * shape.head_dim + 2 * margin}, seed);
  }
  device::Tensor keys(std::uint64_t seed) const {
    return random_tensor(
        dtype_, {shape.batch, shape.key_tokens, shape.kv_heads * shape.head_dim + 2 * margin},
        seed);
  }
  device::Tensor rows() const {
    return device::Tensor(DType::f32, {shape.batch, shape.heads, shape.query_tokens});
  }
  static kernels::Heads heads(const device::Tensor& x) {
    const std::int64_t width = x.shape()[2];
    auto* data =
        static_cast<std::byte*>(x.view().data()) + margin * size_in_bytes(x.view().dtype());
    return {data, x.view().dtype(), x.shape()[1] * width, width};
  }
  static kernels::ConstHeads const_heads(const device::Tensor& x) {
    const kernels::Heads h = heads(x);
    return {h.data, h.dtype, h.batch_stride, h.token_stride};
  }

  kernels::AttentionShape shape;

 private:
  DType dtype_;

 public:
  device::Tensor q;
  device::Tensor k;
  device::Tensor v;
  device::Tensor dout;
};

}  // namespace fourfold::test
