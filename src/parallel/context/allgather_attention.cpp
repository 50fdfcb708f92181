// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "context_attention.hpp"
#include "head_blocks.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/attention.hpp>

#include <array>
#include <memory>
#include <vector>

namespace fourfold::parallel {

using device::MemoryUse;
using kernels::AttentionShape;
using kernels::ConstHeads;
using kernels::Heads;
using kernels::Write;

namespace {

/// Every rank gathers all keys and values, in causal order, and attends with its own queries.
class AllgatherAttention : public ContextParallel {
 public:
  AllgatherAttention(comm::Communicator& cp, const ContextParallelOptions& options,
                     device::Arena& arena);

  void attention(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v, Heads out,
                 float* lse_BNT, device::StreamRef stream) override;
  void attention_backward(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                          ConstHeads out, ConstHeads dout, const float* lse_BNT, float* delta_BNT,
                          Heads dq, Heads dk, Heads dv, device::StreamRef stream) override;

 private:
  /// Of all ranks, in causal order, in ordered_.
  KeyValues gather(const AttentionShape& shape, ConstHeads k, ConstHeads v,
                   device::StreamRef stream);
  /// Sums `all` (in causal order, in by_rank_) over the ranks; this rank's part is in mine_.
  KeyValues sum(const AttentionShape& shape, const KeyValues& all, device::StreamRef stream);
  /// What rank `rank` holds, in a message in which all ranks' parts follow one another.
  KeyValues part(TensorView message, DType dtype, int rank, const AttentionShape& shape) const;
  /// A chunk of queries and the keys in front of it and in it.
  AttentionShape seen_by(int chunk, const AttentionShape& shape) const;

  comm::Communicator* cp_;
  std::int64_t kv_features_;  ///< K H
  TensorView mine_;           ///< f32 or, in the forward pass, the compute dtype; so are the others
  TensorView by_rank_;
  TensorView ordered_;
  DType compute_;
  std::vector<std::int64_t> counts_;
};

}  // namespace

AllgatherAttention::AllgatherAttention(comm::Communicator& cp,
                                       const ContextParallelOptions& options, device::Arena& arena)
    : cp_(&cp),
      kv_features_(options.kv_heads * options.head_dim),
      compute_(options.compute),
      counts_(cp.size()) {
  const std::int64_t tokens = options.sequences * options.tokens;
  const auto take = [&](std::int64_t parts) {
    return arena.take(MemoryUse::communication, DType::f32, {parts, 2, tokens, kv_features_});
  };
  mine_ = take(1);
  by_rank_ = take(cp.size());
  ordered_ = take(cp.size());
}

KeyValues AllgatherAttention::part(TensorView message, DType dtype, int rank,
                                   const AttentionShape& shape) const {
  const std::int64_t elements = 2 * shape.batch * shape.key_tokens * kv_features_;
  const TensorView all = as_elements(message, dtype, cp_->size() * elements);
  return key_values(all.rows(rank * elements, elements), dtype, shape.batch, shape.key_tokens,
                    kv_features_);
}

AttentionShape AllgatherAttention::seen_by(int chunk, const AttentionShape& shape) const {
  return gathered_shape(shape, cp_->size(), cp_->rank(), chunk);
}

KeyValues AllgatherAttention::gather(const AttentionShape& shape, ConstHeads k, ConstHeads v,
                                     device::StreamRef stream) {
  const kernels::HeadRows rows{shape.batch, shape.key_tokens, kv_features_};
  const KeyValues mine = key_values(mine_, compute_, shape.batch, shape.key_tokens, kv_features_);
  kernels::copy_heads(rows, k, mine.k, stream);
  kernels::copy_heads(rows, v, mine.v, stream);
  counts_.assign(counts_.size(), mine.all.elements());
  cp_->all_gather(mine.all, as_elements(by_rank_, compute_, cp_->size() * mine.all.elements()),
                  counts_, stream)
      .wait(stream);
  const std::int64_t tokens = cp_->size() * shape.key_tokens;
  const KeyValues ordered = key_values(ordered_, compute_, shape.batch, tokens, kv_features_);
  for (int rank = 0; rank < cp_->size(); ++rank) {
    const KeyValues theirs = part(by_rank_, compute_, rank, shape);
    for_each_held_chunk(tokens, cp_->size(), rank, [&](const Range& chunk, std::int64_t first) {
      const kernels::HeadRows moved{shape.batch, chunk.count, kv_features_};
      kernels::copy_heads(moved, from_token(read_only(theirs.k), first),
                          from_token(ordered.k, chunk.begin), stream);
      kernels::copy_heads(moved, from_token(read_only(theirs.v), first),
                          from_token(ordered.v, chunk.begin), stream);
    });
  }
  return ordered;
}

KeyValues AllgatherAttention::sum(const AttentionShape& shape, const KeyValues& all,
                                  device::StreamRef stream) {
  const std::int64_t tokens = cp_->size() * shape.key_tokens;
  for (int rank = 0; rank < cp_->size(); ++rank) {
    const KeyValues theirs = part(ordered_, DType::f32, rank, shape);
    for_each_held_chunk(tokens, cp_->size(), rank, [&](const Range& chunk, std::int64_t first) {
      const kernels::HeadRows moved{shape.batch, chunk.count, kv_features_};
      kernels::copy_heads(moved, from_token(read_only(all.k), chunk.begin),
                          from_token(theirs.k, first), stream);
      kernels::copy_heads(moved, from_token(read_only(all.v), chunk.begin),
                          from_token(theirs.v, first), stream);
    });
  }
  const KeyValues mine = key_values(mine_, DType::f32, shape.batch, shape.key_tokens, kv_features_);
  counts_.assign(counts_.size(), mine.all.elements());
  cp_->reduce_scatter(as_elements(ordered_, DType::f32, all.all.elements()), mine.all, counts_,
                      comm::ReduceOp::sum, stream)
      .wait(stream);
  return mine;
}

void AllgatherAttention::attention(const AttentionShape& shape, ConstHeads q, ConstHeads k,
                                   ConstHeads v, Heads out, float* lse_BNT,
                                   device::StreamRef stream) {
  FOURFOLD_EXPECT(shape.causal && shape.query_tokens == shape.key_tokens);
  const KeyValues all = gather(shape, k, v, stream);
  for (const int chunk : {0, 1}) {
    const std::int64_t first = chunk * (shape.query_tokens / 2);
    model::attend({.shape = seen_by(chunk, shape),
                   .q = from_token(q, first),
                   .k = read_only(all.k),
                   .v = read_only(all.v),
                   .out = from_token(out, first),
                   .lse_BNT = lse_BNT + chunk_rows(shape, chunk)},
                  matmul_observer(), stream);
  }
}

void AllgatherAttention::attention_backward(const AttentionShape& shape, ConstHeads q, ConstHeads k,
                                            ConstHeads v, ConstHeads out, ConstHeads dout,
                                            const float* lse_BNT, float* delta_BNT, Heads dq,
                                            Heads dk, Heads dv, device::StreamRef stream) {
  const KeyValues all = gather(shape, k, v, stream);
  const KeyValues gradients =
      key_values(by_rank_, DType::f32, shape.batch, cp_->size() * shape.key_tokens, kv_features_);
  device::zero(gradients.all.data(), gradients.all.bytes(), stream);
  for (const int chunk : {0, 1}) {
    const AttentionShape seen = seen_by(chunk, shape);
    const std::int64_t first = chunk * (shape.query_tokens / 2);
    const std::int64_t rows = chunk_rows(shape, chunk);
    kernels::attention_delta(seen, from_token(out, first), from_token(dout, first),
                             delta_BNT + rows, stream);
    model::differentiate_attention_part({.shape = seen,
                                         .q = from_token(q, first),
                                         .k = read_only(all.k),
                                         .v = read_only(all.v),
                                         .out = from_token(out, first),
                                         .dout = from_token(dout, first),
                                         .lse_BNT = lse_BNT + rows,
                                         .delta_BNT = delta_BNT + rows,
                                         .dq = from_token(dq, first),
                                         .dk = gradients.k,
                                         .dv = gradients.v,
                                         .write_dkv = Write::accumulate},
                                        matmul_observer(), stream);
  }
  const KeyValues mine = sum(shape, gradients, stream);
  const kernels::HeadRows rows{shape.batch, shape.key_tokens, kv_features_};
  kernels::copy_heads(rows, read_only(mine.k), dk, stream);
  kernels::copy_heads(rows, read_only(mine.v), dv, stream);
}

std::unique_ptr<ContextParallel> allgather_attention(comm::Communicator& cp,
                                                     const ContextParallelOptions& options,
                                                     device::Arena& arena) {
  return std::make_unique<AllgatherAttention>(cp, options, arena);
}

}  // namespace fourfold::parallel
