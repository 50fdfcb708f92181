// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "context_attention.hpp"
#include "head_blocks.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/comm/work.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/attention.hpp>

#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace fourfold::parallel {

using device::MemoryUse;
using kernels::AttentionShape;
using kernels::ConstHeads;
using kernels::Heads;
using kernels::Write;

namespace {

/// Blocks that travel around a ring on a stream of their own: to the next rank, from the previous.
class RingLink {
 public:
  /// Collective over `ring`; blocks. @param ring, communication  borrowed
  RingLink(comm::Communicator& ring, device::StreamRef communication, int tag);

  /// Sends `here` and fills `arriving` with what the previous rank sends, after all that is on
  /// `stream` now. Both must stay as they are until finish().
  void start(ConstTensorView here, TensorView arriving, device::StreamRef stream);
  /// Moves on what is in flight: a host transport does only when somebody looks.
  void look();
  /// Orders `stream` after the arrival.
  void finish(device::StreamRef stream);

 private:
  comm::Communicator* ring_;
  device::StreamRef communication_;
  int tag_;
  device::Event ready_;
  comm::Work arrival_;
  comm::Work departure_;
};

/// Keys and values go around the ring; each block is attended to while the next one is on its way.
class RingAttention : public ContextParallel {
 public:
  RingAttention(comm::Communicator& cp, const ContextParallelOptions& options,
                device::Arena& arena);

  void attention(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v, Heads out,
                 float* lse_BNT, device::StreamRef stream) override;
  void attention_backward(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                          ConstHeads out, ConstHeads dout, const float* lse_BNT, float* delta_BNT,
                          Heads dq, Heads dk, Heads dv, device::StreamRef stream) override;

 private:
  /// The position whose block is here after so many hops.
  int holder(int hop) const { return (cp_->rank() - hop + cp_->size()) % cp_->size(); }
  KeyValues block(int hop, const AttentionShape& shape) const;
  KeyValues gradients(TensorView memory, const AttentionShape& shape) const;
  /// `target` when it is f32, else the f32 memory that gathers what goes there.
  Heads f32_image(const Heads& target, const AttentionShape& shape) const;
  void pack(const AttentionShape& shape, ConstHeads k, ConstHeads v, device::StreamRef stream);
  /// Makes in `target` the gradients of the keys and values of position `key_rank`, and adds up
  /// those of the queries.
  /// @param queries  and their gradients, f32; whatever keys are here
  /// @param has_dq   by chunk: whether there is something to add to
  void differentiate(const kernels::AttentionGradients& queries, std::array<bool, 2>& has_dq,
                     int key_rank, ConstHeads k, ConstHeads v, const KeyValues& target,
                     device::StreamRef stream);

  comm::Communicator* cp_;
  std::int64_t kv_features_;             ///< K H
  std::array<TensorView, 2> blocks_;     ///< the one that is here, the one that is on its way
  std::array<TensorView, 3> gradients_;  ///< f32: being made, arriving, departing
  TensorView image_;                     ///< f32: outputs or dq while they gather; 16 bits only
  device::Stream communication_;
  RingLink keys_;
  RingLink sums_;
};

}  // namespace

RingLink::RingLink(comm::Communicator& ring, device::StreamRef communication, int tag)
    : ring_(&ring), communication_(communication), tag_(tag) {
  std::vector<comm::MessageRoute> routes;
  for (int rank = 0; rank < ring.size(); ++rank) {
    routes.push_back({rank, (rank + 1) % ring.size(), tag});
  }
  ring.expect_messages(routes);
}

void RingLink::start(ConstTensorView here, TensorView arriving, device::StreamRef stream) {
  const int next = (ring_->rank() + 1) % ring_->size();
  const int previous = (ring_->rank() + ring_->size() - 1) % ring_->size();
  ready_.record(stream);
  ready_.wait(communication_);
  arrival_ = ring_->recv(arriving, previous, tag_, communication_);
  departure_ = ring_->send(here, next, tag_, communication_);
}

void RingLink::look() {
  arrival_.test();
  departure_.test();
}

void RingLink::finish(device::StreamRef stream) {
  arrival_.wait(stream);
  departure_.wait(stream);
}

RingAttention::RingAttention(comm::Communicator& cp, const ContextParallelOptions& options,
                             device::Arena& arena)
    : cp_(&cp),
      kv_features_(options.kv_heads * options.head_dim),
      keys_(cp, communication_, 0),
      sums_(cp, communication_, 1) {
  const std::int64_t tokens = options.sequences * options.tokens;
  const Shape block{2, tokens, kv_features_};
  for (TensorView& memory : blocks_) {
    memory = arena.take(MemoryUse::communication, options.compute, block);
  }
  for (TensorView& memory : gradients_) {
    memory = arena.take(MemoryUse::communication, DType::f32, block);
  }
  if (options.compute != DType::f32) {
    image_ =
        arena.take(MemoryUse::workspace, DType::f32, {tokens, options.heads * options.head_dim});
  }
}

KeyValues RingAttention::block(int hop, const AttentionShape& shape) const {
  const TensorView& memory = blocks_[hop % 2];
  return key_values(memory, memory.dtype(), shape.batch, shape.key_tokens, kv_features_);
}

KeyValues RingAttention::gradients(TensorView memory, const AttentionShape& shape) const {
  return key_values(memory, DType::f32, shape.batch, shape.key_tokens, kv_features_);
}

Heads RingAttention::f32_image(const Heads& target, const AttentionShape& shape) const {
  if (target.dtype == DType::f32) {
    return target;
  }
  return dense_heads(image_, 0, shape.query_tokens, shape.heads * shape.head_dim);
}

void RingAttention::pack(const AttentionShape& shape, ConstHeads k, ConstHeads v,
                         device::StreamRef stream) {
  const KeyValues mine = block(0, shape);
  const kernels::HeadRows rows{shape.batch, shape.key_tokens, kv_features_};
  kernels::copy_heads(rows, k, mine.k, stream);
  kernels::copy_heads(rows, v, mine.v, stream);
}

void RingAttention::attention(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                              Heads out, float* lse_BNT, device::StreamRef stream) {
  FOURFOLD_EXPECT(shape.causal && shape.query_tokens == shape.key_tokens);
  const std::int64_t chunk = shape.query_tokens / 2;
  const Heads sum = f32_image(out, shape);
  pack(shape, k, v, stream);
  for (int hop = 0; hop < cp_->size(); ++hop) {
    const KeyValues here = block(hop, shape);
    const bool travels = hop + 1 < cp_->size();
    if (travels) {
      keys_.start(here.all, block(hop + 1, shape).all, stream);
    }
    for (const ChunkProduct& product : chunk_products(cp_->rank(), holder(hop))) {
      const std::int64_t query = product.query_chunk * chunk;
      const std::int64_t key = product.key_chunks.begin * chunk;
      model::attend({.shape = shape_of(product, shape),
                     .q = from_token(q, query),
                     .k = from_token(read_only(here.k), key),
                     .v = from_token(read_only(here.v), key),
                     .out = from_token(sum, query),
                     .lse_BNT = lse_BNT + chunk_rows(shape, product.query_chunk),
                     .merges = hop > 0},
                    matmul_observer(), stream);
      keys_.look();
    }
    if (travels) {
      keys_.finish(stream);
    }
  }
  if (sum.data != out.data) {
    kernels::copy_heads({shape.batch, shape.query_tokens, shape.heads * shape.head_dim},
                        read_only(sum), out, stream);
  }
}

void RingAttention::differentiate(const kernels::AttentionGradients& queries,
                                  std::array<bool, 2>& has_dq, int key_rank, ConstHeads k,
                                  ConstHeads v, const KeyValues& target, device::StreamRef stream) {
  const AttentionShape& shape = queries.shape;
  const std::int64_t chunk = shape.query_tokens / 2;
  device::zero(target.all.data(), target.all.bytes(), stream);
  for (const ChunkProduct& product : chunk_products(cp_->rank(), key_rank)) {
    const std::int64_t query = product.query_chunk * chunk;
    const std::int64_t key = product.key_chunks.begin * chunk;
    const std::int64_t rows = chunk_rows(shape, product.query_chunk);
    bool& adds = has_dq[product.query_chunk];
    model::differentiate_attention_part({.shape = shape_of(product, shape),
                                         .q = from_token(queries.q, query),
                                         .k = from_token(k, key),
                                         .v = from_token(v, key),
                                         .out = from_token(queries.out, query),
                                         .dout = from_token(queries.dout, query),
                                         .lse_BNT = queries.lse_BNT + rows,
                                         .delta_BNT = queries.delta_BNT + rows,
                                         .dq = from_token(queries.dq, query),
                                         .write_dq = adds ? Write::accumulate : Write::replace,
                                         .dk = from_token(target.k, key),
                                         .dv = from_token(target.v, key),
                                         .write_dkv = Write::accumulate},
                                        matmul_observer(), stream);
    adds = true;
    keys_.look();
    sums_.look();
  }
}

/// Keys and values make C - 1 hops. The gradients of a block set out from the first rank it comes
/// to, are added to at every other rank, and make C - 1 hops too: the last one brings them home,
/// where the block's own rank adds its share. They are on their way while the next share is made,
/// and so the own share is made last.
void RingAttention::attention_backward(const AttentionShape& shape, ConstHeads q, ConstHeads k,
                                       ConstHeads v, ConstHeads out, ConstHeads dout,
                                       const float* lse_BNT, float* delta_BNT, Heads dq, Heads dk,
                                       Heads dv, device::StreamRef stream) {
  const std::int64_t chunk = shape.query_tokens / 2;
  const kernels::AttentionGradients queries{.shape = shape,
                                            .q = q,
                                            .out = out,
                                            .dout = dout,
                                            .lse_BNT = lse_BNT,
                                            .delta_BNT = delta_BNT,
                                            .dq = f32_image(dq, shape)};
  std::array<bool, 2> has_dq{};
  KeyValues made = gradients(gradients_[0], shape);
  KeyValues departing = gradients(gradients_[1], shape);
  const KeyValues arriving = gradients(gradients_[2], shape);
  pack(shape, k, v, stream);
  keys_.start(block(0, shape).all, block(1, shape).all, stream);
  for (const int half : {0, 1}) {
    kernels::attention_delta(shape_of({half, {half, 1}, true}, shape),
                             from_token(out, half * chunk), from_token(dout, half * chunk),
                             delta_BNT + chunk_rows(shape, half), stream);
  }
  keys_.finish(stream);
  for (int hop = 1; hop < cp_->size(); ++hop) {
    const KeyValues here = block(hop, shape);
    const bool travels = hop + 1 < cp_->size();
    if (travels) {
      keys_.start(here.all, block(hop + 1, shape).all, stream);
    }
    differentiate(queries, has_dq, holder(hop), read_only(here.k), read_only(here.v), made, stream);
    if (hop > 1) {
      sums_.finish(stream);
      kernels::add(made.all, arriving.all, made.all, stream);
    }
    std::swap(made, departing);
    sums_.start(departing.all, arriving.all, stream);
    if (travels) {
      keys_.finish(stream);
    }
  }
  differentiate(queries, has_dq, cp_->rank(), k, v, made, stream);
  sums_.finish(stream);
  kernels::add(made.all, arriving.all, made.all, stream);
  const kernels::HeadRows rows{shape.batch, shape.key_tokens, kv_features_};
  kernels::copy_heads(rows, read_only(made.k), dk, stream);
  kernels::copy_heads(rows, read_only(made.v), dv, stream);
  if (queries.dq.data != dq.data) {
    kernels::copy_heads({shape.batch, shape.query_tokens, shape.heads * shape.head_dim},
                        read_only(queries.dq), dq, stream);
  }
}

std::unique_ptr<ContextParallel> ring_attention(comm::Communicator& cp,
                                                const ContextParallelOptions& options,
                                                device::Arena& arena) {
  return std::make_unique<RingAttention>(cp, options, arena);
}

}  // namespace fourfold::parallel
