// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Exact attention in O(tokens) memory (Dao et al. 2022; online softmax), grouped keys/values
/// (Ainslie et al. 2023). Legend: B sequences, Tq query tokens, Tk key tokens, N query heads, K
/// key/value heads (K divides N), H head features.
///
/// softmax(scale * q k^T + mask) v per head; query head n uses key/value head n / (N / K). All
/// accumulation in f32. Stream-ordered, no synchronisation, bit-identical from run to run and for
/// any number of threads. On NVIDIA's GPUs cuDNN computes what is in 16 bits, to which it
/// rounds the softmax too before it multiplies (docs/gpu.md).
/// @pre q, k, v and dout are of one type, f32, bf16 or f16; out, dq, dk and dv are of that one or
/// f32; H <= most_head_dim()
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/operands.hpp>

#include <cstddef>
#include <cstdint>

namespace fourfold::kernels {

/// Heads inside a bigger row, as a fused query/key/value product leaves them: element (b, t, n, h)
/// is at data + b * batch_stride + t * token_stride + n * H + h (strides in elements).
template <class Pointer>
struct BasicHeads {
  Pointer data = nullptr;
  DType dtype = DType::f32;
  std::int64_t batch_stride = 0;
  std::int64_t token_stride = 0;

  /// Its elements, of `dtype`; const ones of ConstHeads.
  template <class T>
  constexpr T* as() const {
    return static_cast<T*>(data);
  }
};
using ConstHeads = BasicHeads<const void*>;
using Heads = BasicHeads<void*>;

struct AttentionShape {
  std::int64_t batch = 0;         ///< B
  std::int64_t query_tokens = 0;  ///< Tq
  std::int64_t key_tokens = 0;    ///< Tk
  std::int64_t heads = 0;         ///< N
  std::int64_t kv_heads = 0;      ///< K
  std::int64_t head_dim = 0;      ///< H
  float scale = 1.0F;             ///< usually 1 / sqrt(H)
  bool causal = true;             ///< query i sees keys 0 .. i + query_offset
  /// position of query 0 minus position of key 0 (for context parallelism, sampling)
  std::int64_t query_offset = 0;
  /// The backward pass gives the same bits every time. Only cuDNN's may do otherwise: it is faster
  /// then, and takes less memory (attention_workspace_bytes)
  bool deterministic = true;
};

/// The most features of a head, H, that attention and its gradients take in this build: 256 on a
/// device, where a thread has a row of a head in registers; any number on hosts.
std::int64_t most_head_dim() noexcept;

/// out = attention(q, k, v).
/// @param lse_BNT  f32 [B, N, Tq], log of the softmax denominator, kept for the backward pass; a
///   query that sees no key has lse = -inf and out = 0
void attention(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v, Heads out,
               float* lse_BNT, device::StreamRef stream);

/// Gradients of attention(). dq, dk, dv are replaced (for grouped heads dk and dv are summed over
/// the group).
/// @param delta_BNT  f32 [B, N, Tq], scratch: undefined afterwards
void attention_backward(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                        ConstHeads out, ConstHeads dout, const float* lse_BNT, float* delta_BNT,
                        Heads dq, Heads dk, Heads dv, device::StreamRef stream);

/// What cuDNN's attention_backward() takes beside its arguments (as cuDNN 9.19 does), on a device
/// of that compute capability (90 for 9.0), in bytes: 4 B N Tq, and
///     deterministic, before 10.0   2 B N Tq Tk (Tq in whole 64, Tk in whole 128, or 64 before 9.0)
///     deterministic, from 10.0 on  nothing
///     else                         4 B N Tq H, before 9.0 twice
/// and where K < N gradients of keys and values for each query head, 4 B N Tk H, twice where it is
/// deterministic from 10.0 on. It is the frontend that asks for these
/// (node/scaled_dot_product_flash_attention.h), whatever the mask.
std::int64_t attention_workspace_bytes(const AttentionShape& shape, int compute_capability);

// -- over one part of the keys after the other ----------------------------------------------------

/// attention() over further keys: `out` and `lse_BNT` hold the attention over some keys and become
/// that over those and these together, with m = max(l1, l2):
///     out = (e^(l1 - m) out1 + e^(l2 - m) out2) / (e^(l1 - m) + e^(l2 - m)),
///     lse = m + log(e^(l1 - m) + e^(l2 - m)).
/// Queries that see none of these keys keep their bits. Where cuDNN attends to these keys it rounds
/// out2 to 16 bits.
/// @pre out is f32, whatever q, k and v are: so nothing is rounded to storage between two parts
void attention_merge(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                     Heads out, float* lse_BNT, device::StreamRef stream);

/// delta = rowsum(dout * out), f32 [B, N, Tq]: what the parts of a backward pass share. Of `shape`
/// the sizes of the queries are used.
void attention_delta(const AttentionShape& shape, ConstHeads out, ConstHeads dout, float* delta_BNT,
                     device::StreamRef stream);

/// The gradients of attention() through the keys of one part. lse and delta are over all keys, so
/// the parts add up: dq over the parts of the keys, dk and dv over the parts of the queries. cuDNN
/// makes delta anew, from out and dout, and rounds the gradients of a part to 16 bits before they
/// are added.
/// @param out  what delta was made of; without data where it is not at hand, and then cuDNN does
///   not compute
/// @param write_dq, write_dkv  accumulate: the gradients are f32, whatever q, k and v are
void attention_backward_part(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                             ConstHeads out, ConstHeads dout, const float* lse_BNT,
                             const float* delta_BNT, Heads dq, Write write_dq, Heads dk, Heads dv,
                             Write write_dkv, device::StreamRef stream);

/// The operands of attention_backward() and attention_backward_part(), where they are handed on.
struct AttentionGradients {
  AttentionShape shape = {};
  ConstHeads q = {};
  ConstHeads k = {};
  ConstHeads v = {};
  ConstHeads out = {};  ///< without data where it is not at hand; delta is, then
  ConstHeads dout = {};
  const float* lse_BNT = nullptr;
  const float* delta_BNT = nullptr;
  Heads dq = {};
  Write write_dq = Write::replace;
  Heads dk = {};
  Heads dv = {};
  Write write_dkv = Write::replace;
};

/// How much of a tensor of heads is meant: `features` neighbours of each token, one head or
/// several.
struct HeadRows {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  std::int64_t features = 0;
};

/// to[b][t][f] = from[b][t][f], converted between f32, bf16 and f16 (round to nearest even) where
/// the two differ. Both begin at their data; what lies between the features stays as it is. No
/// overlap. Stream-ordered.
void copy_heads(const HeadRows& rows, ConstHeads from, Heads to, device::StreamRef stream);

}  // namespace fourfold::kernels

// The references of all these: plain, serial, obviously right, in f64 throughout, one row of scores
// at a time; same contracts. Tests compare the fast kernels with them; not for use in a run.
namespace fourfold::kernels::reference {

void attention(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v, Heads out,
               float* lse_BNT, device::StreamRef stream);
void attention_backward(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                        ConstHeads out, ConstHeads dout, const float* lse_BNT, float* delta_BNT,
                        Heads dq, Heads dk, Heads dv, device::StreamRef stream);
void attention_merge(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                     Heads out, float* lse_BNT, device::StreamRef stream);
void attention_delta(const AttentionShape& shape, ConstHeads out, ConstHeads dout, float* delta_BNT,
                     device::StreamRef stream);
void attention_backward_part(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                             ConstHeads out, ConstHeads dout, const float* lse_BNT,
                             const float* delta_BNT, Heads dq, Write write_dq, Heads dk, Heads dv,
                             Write write_dkv, device::StreamRef stream);

void copy_heads(const HeadRows& rows, ConstHeads from, Heads to, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
