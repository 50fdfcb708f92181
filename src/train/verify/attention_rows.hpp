// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Whether attention and its gradients are what their operands make, row by row: in f64 on the
/// host, written out plainly. At most 512 queries and 512 keys of each head are looked at, drawn at
/// random. Legend as in kernels/attention.hpp.
#pragma once

#include "matmul_sums.hpp"

#include <fourfold/base/philox.hpp>
#include <fourfold/kernels/attention.hpp>

#include <cstdint>
#include <vector>

namespace fourfold::train {

/// Heads of the host: those of kernels::BasicHeads, from their first element on.
struct HostHeads {
  std::vector<float> values;
  DType stored = DType::f32;
  std::int64_t batch_stride = 0;
  std::int64_t token_stride = 0;

  bool empty() const noexcept { return values.empty(); }
};

/// What one call of attention, or of its gradients, was made of and what it made.
struct HostAttention {
  kernels::AttentionShape shape;
  HostHeads q, k, v;
  HostHeads dout = {};  ///< of gradients alone, as the others in d
  HostHeads out;        ///< of gradients empty: delta is there
  std::vector<float> lse_BNT;
  std::vector<float> delta_BNT = {};  ///< empty: it is made of out and dout
  HostHeads dq = {}, dk = {}, dv = {};
  HostHeads dq_before = {}, dk_before = {}, dv_before = {};  ///< was added to; empty: nothing was
  /// What was merged with; empty: nothing was.
  HostHeads out_before = {};
  std::vector<float> lse_before_BNT = {};
  /// What the softmax and each part's result are rounded to before they are multiplied or merged:
  /// 2^-8 or 2^-11 where a library does so, else 0.
  double softmax_roundoff = 0;
};

/// The largest departure of an element of out (or of lse) in the queries looked at.
///
/// With p_j the softmax, u the roundoff of out's type, r softmax_roundoff and e = 2^-24, the unit
/// of element h of a query is
///     u |out_h| / 7.9 + (r + e S) (sqrt(sum_j (p_j v_jh)^2) + |out_h|) + underflow,
/// where S = 4 + sqrt(H) scale |q| max_j |k_j| + max_j |s_j| + sqrt(keys) is how rounding goes
/// through a score and the exponential of it. That of lse is e (S + |lse|). (Unlike that of sums
/// with random signs, the rounding of one stored number has a bound, u |out_h|: 7.9 units.)
///
/// Nothing is said of a call whose operands are not all finite, nor of what f16 cannot hold.
Departure check_attention(const HostAttention& made, PhiloxKey key);

/// The same of dq in the queries, dk and dv in the keys looked at. With ds_j = scale p_j (dp_j -
/// delta), dp_j = dout . v_j, the unit of element h of dq is
///     u |dq_h| / 7.9 + (r + e S) (sqrt(sum_j (ds_j k_jh)^2) + |dq_h|)
///     + e sqrt(H) scale |dout| (sqrt(sum_j (p_j |v_j| k_jh)^2) + |out| |sum_j p_j k_jh|)
///     + e |what there was before|,
/// and that of dk and dv likewise, over the queries.
Departure check_attention_gradient(const HostAttention& made, PhiloxKey key);

}  // namespace fourfold::train
