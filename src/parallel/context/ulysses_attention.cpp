// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "context_attention.hpp"
#include "head_blocks.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/attention.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

namespace fourfold::parallel {

using device::MemoryUse;
using kernels::AttentionShape;
using kernels::ConstHeads;
using kernels::HeadRows;
using kernels::Heads;

namespace {

/// Deals the heads to the ranks of the cp axis: each has all tokens of its heads, in causal order,
/// attends as one rank would, and gives the results back to the ranks of the tokens.
class UlyssesAttention : public ContextParallel {
 public:
  UlyssesAttention(comm::Communicator& cp, const ContextParallelOptions& options,
                   device::Arena& arena);

  void attention(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v, Heads out,
                 float* lse_BNT, device::StreamRef stream) override;
  void attention_backward(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                          ConstHeads out, ConstHeads dout, const float* lse_BNT, float* delta_BNT,
                          Heads dq, Heads dk, Heads dv, device::StreamRef stream) override;

 private:
  enum class Kind : std::uint8_t { query, key_value };
  /// A tensor on its way: all heads of the tokens held here, and all tokens of the heads dealt to
  /// this rank, in causal order.
  template <class Here>
  struct Travelling {
    Kind kind;
    Here here;
    Heads dealt;
  };
  using Operand = Travelling<ConstHeads>;
  using Result = Travelling<Heads>;

  /// Features of the heads dealt to one rank, and where those of `rank` begin among all.
  std::int64_t features(Kind kind) const;
  std::int64_t first_feature(Kind kind, int rank) const;
  /// Attention over all tokens with the heads dealt to this rank.
  AttentionShape dealt(const AttentionShape& shape) const;
  /// Elements of all tokens of the heads dealt to this rank.
  std::int64_t elements(Kind kind, const AttentionShape& shape) const;
  /// Dense memory of that size from element `first` on.
  Heads place(TensorView memory, std::int64_t first, Kind kind, const AttentionShape& shape) const;
  /// Tensor `index` of those that travel together, in a message with one part per rank.
  template <class Here>
  Heads in_message(TensorView message, std::span<const Travelling<Here>> together,
                   std::size_t index, int rank, const AttentionShape& shape) const;

  /// here -> dealt. Packs in leaving_, which may be where they are dealt to.
  void deal(std::span<const Operand> operands, const AttentionShape& shape,
            device::StreamRef stream);
  /// dealt -> here, through leaving_ and `arriving`, which may be where they were dealt to. What
  /// sharers of a key/value head have is summed.
  void collect(std::span<const Result> results, TensorView arriving, const AttentionShape& shape,
               device::StreamRef stream);
  /// delta_BNT of the tokens held here -> that of the heads dealt to this rank.
  const float* deal_delta(const float* delta_BNT, const AttentionShape& shape,
                          device::StreamRef stream);
  void exchange(TensorView leaving, TensorView arriving, device::StreamRef stream);

  comm::Communicator* cp_;
  std::int64_t head_dim_;
  std::int64_t heads_;     ///< dealt to one rank
  std::int64_t kv_heads_;  ///< likewise
  int sharers_;            ///< ranks that get the same key/value head
  DType compute_;
  DType kv_gradient_;     ///< f32 where gradients of sharers are summed
  bool deals_out_;        ///< to make delta from it, as libraries of devices do: with its heads
  TensorView leaving_;    ///< u8: messages, then operands as they were dealt
  TensorView arriving_;   ///< u8: messages, then results to be collected
  TensorView delta_out_;  ///< f32
  TensorView delta_in_;   ///< f32; absent when it is made where it is needed
  std::vector<std::int64_t> counts_;
};

}  // namespace

UlyssesAttention::UlyssesAttention(comm::Communicator& cp, const ContextParallelOptions& options,
                                   device::Arena& arena)
    : cp_(&cp),
      head_dim_(options.head_dim),
      heads_(options.heads / cp.size()),
      kv_heads_(std::max<std::int64_t>(1, options.kv_heads / cp.size())),
      sharers_(static_cast<int>(cp.size() * kv_heads_ / options.kv_heads)),
      compute_(options.compute),
      kv_gradient_(sharers_ > 1 ? DType::f32 : options.compute),
      deals_out_(device::has_own_memory && options.compute != DType::f32),
      counts_(cp.size()) {
  FOURFOLD_EXPECT(options.heads % cp.size() == 0);
  FOURFOLD_EXPECT(cp.size() * kv_heads_ == sharers_ * options.kv_heads);
  const std::int64_t tokens = options.sequences * options.tokens * cp.size();
  const auto bytes = [&](std::int64_t heads, DType dtype) {
    return tokens * heads * head_dim_ * size_in_bytes(dtype);
  };
  const std::int64_t operands = bytes((deals_out_ ? 3 : 2) * heads_ + 2 * kv_heads_, compute_);
  const std::int64_t results = bytes(heads_, compute_) + bytes(2 * kv_heads_, kv_gradient_);
  const Shape size{std::max(operands, results)};
  leaving_ = arena.take(MemoryUse::communication, DType::u8, size);
  arriving_ = arena.take(MemoryUse::communication, DType::u8, size);
  delta_out_ = arena.take(MemoryUse::communication, DType::f32, {tokens * heads_});
  if (!deals_out_) {
    delta_in_ = arena.take(MemoryUse::communication, DType::f32, {tokens * heads_});
  }
}

std::int64_t UlyssesAttention::features(Kind kind) const {
  return (kind == Kind::query ? heads_ : kv_heads_) * head_dim_;
}

std::int64_t UlyssesAttention::first_feature(Kind kind, int rank) const {
  return (kind == Kind::query ? rank : rank / sharers_) * features(kind);
}

AttentionShape UlyssesAttention::dealt(const AttentionShape& shape) const {
  return dealt_shape(shape, cp_->size());
}

std::int64_t UlyssesAttention::elements(Kind kind, const AttentionShape& shape) const {
  return shape.batch * cp_->size() * shape.query_tokens * features(kind);
}

Heads UlyssesAttention::place(TensorView memory, std::int64_t first, Kind kind,
                              const AttentionShape& shape) const {
  return dense_heads(memory, first, cp_->size() * shape.query_tokens, features(kind));
}

template <class Here>
Heads UlyssesAttention::in_message(TensorView message, std::span<const Travelling<Here>> together,
                                   std::size_t index, int rank, const AttentionShape& shape) const {
  std::int64_t first = rank * (message.elements() / cp_->size());
  for (std::size_t i = 0; i < index; ++i) {
    first += elements(together[i].kind, shape) / cp_->size();
  }
  return dense_heads(message, first, shape.query_tokens, features(together[index].kind));
}

void UlyssesAttention::exchange(TensorView leaving, TensorView arriving, device::StreamRef stream) {
  counts_.assign(counts_.size(), leaving.elements() / cp_->size());
  cp_->all_to_all(leaving, counts_, arriving, counts_, stream).wait(stream);
}

void UlyssesAttention::deal(std::span<const Operand> operands, const AttentionShape& shape,
                            device::StreamRef stream) {
  std::int64_t all = 0;
  for (const Operand& operand : operands) {
    all += elements(operand.kind, shape);
  }
  const TensorView leaving = as_elements(leaving_, compute_, all);
  const TensorView arriving = as_elements(arriving_, compute_, all);
  for (int rank = 0; rank < cp_->size(); ++rank) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Operand& operand = operands[i];
      kernels::copy_heads({shape.batch, shape.query_tokens, features(operand.kind)},
                          from_element(operand.here, first_feature(operand.kind, rank)),
                          in_message(leaving, operands, i, rank, shape), stream);
    }
  }
  exchange(leaving, arriving, stream);
  for (int rank = 0; rank < cp_->size(); ++rank) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Operand& operand = operands[i];
      const ConstHeads came = read_only(in_message(arriving, operands, i, rank, shape));
      for_each_held_chunk(cp_->size() * shape.query_tokens, cp_->size(), rank,
                          [&](const Range& chunk, std::int64_t first) {
                            kernels::copy_heads({shape.batch, chunk.count, features(operand.kind)},
                                                from_token(came, first),
                                                from_token(operand.dealt, chunk.begin), stream);
                          });
    }
  }
}

void UlyssesAttention::collect(std::span<const Result> results, TensorView arriving,
                               const AttentionShape& shape, device::StreamRef stream) {
  const TensorView leaving = as_elements(leaving_, arriving.dtype(), arriving.elements());
  for (int rank = 0; rank < cp_->size(); ++rank) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Result& result = results[i];
      const Heads goes = in_message(leaving, results, i, rank, shape);
      for_each_held_chunk(cp_->size() * shape.query_tokens, cp_->size(), rank,
                          [&](const Range& chunk, std::int64_t first) {
                            kernels::copy_heads({shape.batch, chunk.count, features(result.kind)},
                                                from_token(read_only(result.dealt), chunk.begin),
                                                from_token(goes, first), stream);
                          });
    }
  }
  exchange(leaving, arriving, stream);
  const int together = results.front().kind == Kind::key_value ? sharers_ : 1;
  const std::int64_t part = arriving.elements() / cp_->size();
  for (int rank = 0; rank < cp_->size(); rank += together) {
    const TensorView sum = arriving.rows(rank * part, part);
    for (int sharer = rank + 1; sharer < rank + together; ++sharer) {
      kernels::add(sum, arriving.rows(sharer * part, part), sum, stream);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Result& result = results[i];
      kernels::copy_heads({shape.batch, shape.query_tokens, features(result.kind)},
                          read_only(in_message(arriving, results, i, rank, shape)),
                          from_element(result.here, first_feature(result.kind, rank)), stream);
    }
  }
}

const float* UlyssesAttention::deal_delta(const float* delta_BNT, const AttentionShape& shape,
                                          device::StreamRef stream) {
  const std::int64_t tokens = shape.query_tokens;
  const std::int64_t part = shape.batch * heads_ * tokens;
  const TensorView leaving = delta_out_.rows(0, cp_->size() * part);
  const TensorView arriving = delta_in_.rows(0, cp_->size() * part);
  for (int rank = 0; rank < cp_->size(); ++rank) {
    kernels::copy_heads(
        {shape.batch, heads_, tokens},
        {delta_BNT + rank * heads_ * tokens, DType::f32, shape.heads * tokens, tokens},
        dense_heads(leaving, rank * part, heads_, tokens), stream);
  }
  exchange(leaving, arriving, stream);
  const Heads all = dense_heads(leaving, 0, heads_, cp_->size() * tokens);
  for (int rank = 0; rank < cp_->size(); ++rank) {
    const ConstHeads came = read_only(dense_heads(arriving, rank * part, heads_, tokens));
    for_each_held_chunk(
        cp_->size() * tokens, cp_->size(), rank, [&](const Range& chunk, std::int64_t first) {
          kernels::copy_heads({shape.batch, heads_, chunk.count}, from_element(came, first),
                              from_element(all, chunk.begin), stream);
        });
  }
  return leaving.as<float>();
}

void UlyssesAttention::attention(const AttentionShape& shape, ConstHeads q, ConstHeads k,
                                 ConstHeads v, Heads out, float* lse_BNT,
                                 device::StreamRef stream) {
  FOURFOLD_EXPECT(shape.causal && shape.query_tokens == shape.key_tokens);
  const std::int64_t queries = elements(Kind::query, shape);
  const std::int64_t keys = elements(Kind::key_value, shape);
  const TensorView memory = as_elements(leaving_, compute_, queries + 2 * keys);
  const std::array operands{
      Operand{Kind::query, q, place(memory, 0, Kind::query, shape)},
      Operand{Kind::key_value, k, place(memory, queries, Kind::key_value, shape)},
      Operand{Kind::key_value, v, place(memory, queries + keys, Kind::key_value, shape)}};
  deal(operands, shape, stream);
  const TensorView attended = as_elements(arriving_, compute_, queries);
  const std::array result{Result{Kind::query, out, place(attended, 0, Kind::query, shape)}};
  model::attend({.shape = dealt(shape),
                 .q = read_only(operands[0].dealt),
                 .k = read_only(operands[1].dealt),
                 .v = read_only(operands[2].dealt),
                 .out = result[0].dealt,
                 .lse_BNT = lse_BNT},
                matmul_observer(), stream);
  collect(result, attended, shape, stream);
}

/// Queries, keys and values are sent again: kept a second time, in this cut, they would take as
/// much memory as the model keeps of them.
void UlyssesAttention::attention_backward(const AttentionShape& shape, ConstHeads q, ConstHeads k,
                                          ConstHeads v, ConstHeads out, ConstHeads dout,
                                          const float* lse_BNT, float* delta_BNT, Heads dq,
                                          Heads dk, Heads dv, device::StreamRef stream) {
  const std::int64_t queries = elements(Kind::query, shape);
  const std::int64_t keys = elements(Kind::key_value, shape);
  const std::int64_t before_out = 2 * queries + 2 * keys;
  const TensorView memory =
      as_elements(leaving_, compute_, before_out + (deals_out_ ? queries : 0));
  const Heads dealt_out = deals_out_ ? place(memory, before_out, Kind::query, shape) : Heads{};
  const std::array operands{
      Operand{Kind::query, q, place(memory, 0, Kind::query, shape)},
      Operand{Kind::query, dout, place(memory, queries, Kind::query, shape)},
      Operand{Kind::key_value, k, place(memory, 2 * queries, Kind::key_value, shape)},
      Operand{Kind::key_value, v, place(memory, 2 * queries + keys, Kind::key_value, shape)},
      Operand{Kind::query, out, dealt_out}};
  const float* delta = delta_out_.as<float>();
  if (deals_out_) {
    deal(operands, shape, stream);
    kernels::attention_delta(dealt(shape), read_only(dealt_out), read_only(operands[1].dealt),
                             delta_out_.as<float>(), stream);
  } else {
    kernels::attention_delta(shape, out, dout, delta_BNT, stream);
    delta = deal_delta(delta_BNT, shape, stream);
    deal(std::span(operands).first(operands.size() - 1), shape, stream);
  }
  // Those of keys and values first: f32 wants its alignment.
  const TensorView of_keys = as_elements(arriving_, kv_gradient_, 2 * keys);
  const std::int64_t key_bytes = of_keys.bytes();
  const TensorView rest = arriving_.rows(key_bytes, arriving_.elements() - key_bytes);
  const TensorView of_queries = as_elements(rest, compute_, queries);
  const std::array query_result{Result{Kind::query, dq, place(of_queries, 0, Kind::query, shape)}};
  const std::array key_results{
      Result{Kind::key_value, dk, place(of_keys, 0, Kind::key_value, shape)},
      Result{Kind::key_value, dv, place(of_keys, keys, Kind::key_value, shape)}};
  model::differentiate_attention_part({.shape = dealt(shape),
                                       .q = read_only(operands[0].dealt),
                                       .k = read_only(operands[2].dealt),
                                       .v = read_only(operands[3].dealt),
                                       .out = read_only(dealt_out),
                                       .dout = read_only(operands[1].dealt),
                                       .lse_BNT = lse_BNT,
                                       .delta_BNT = delta,
                                       .dq = query_result[0].dealt,
                                       .dk = key_results[0].dealt,
                                       .dv = key_results[1].dealt},
                                      matmul_observer(), stream);
  collect(std::span<const Result>(query_result), of_queries, shape, stream);
  collect(std::span<const Result>(key_results), of_keys, shape, stream);
}

std::unique_ptr<ContextParallel> ulysses_attention(comm::Communicator& cp,
                                                   const ContextParallelOptions& options,
                                                   device::Arena& arena) {
  return std::make_unique<UlyssesAttention>(cp, options, arena);
}

}  // namespace fourfold::parallel
