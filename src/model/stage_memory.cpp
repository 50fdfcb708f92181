// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "stage_memory.hpp"

#include <fourfold/base/contract.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace fourfold::model {
namespace {

using device::MemoryUse;

TensorView first_rows(TensorView view, std::int64_t count) {
  return view ? view.rows(0, count) : view;
}

NormStatistics first_rows(const NormStatistics& statistics, std::int64_t count) {
  return {first_rows(statistics.mean_R, count), first_rows(statistics.rstd_R, count)};
}

/// Takes the pieces of one stage.
class Planner {
 public:
  Planner(const StageShape& shape, device::Arena& arena, device::Arena* host)
      : shape_(shape), arena_(arena), host_(host) {}

  StageMemory write() {
    StageMemory memory;
    memory.scratch = scratch();
    lay_out_rotary_tables(memory);
    const bool trains = shape_.trains();
    share_activations();
    if (shape_.has_head_in_chunks()) {
      shared_logits_ = logits();
    }
    const bool kept_gradients = trains && shape_.splits();
    const ProductGradients shared_gradients =
        trains && !shape_.splits() && blocks() > 0 ? gradients() : ProductGradients{};
    if (kept_gradients && shape_.config.feed_forward.gated && blocks() > 0) {
      shared_activated_ = workspace(shape_.rows() * shape_.sizes.ffn);
    }
    if (shape_.keeps_on_host()) {
      make_turns();
      memory.block_turns = turns_.size();
      memory.input_turns = input_turns_.size();
    }
    for (int slot = 0; slot < shape_.options.slots; ++slot) {
      SlotMemory& current = memory.slots.emplace_back();
      current.batch = batch();
      current.residual_RD = residuals();
      if (trains) {
        current.dresidual_RD = hidden();
      }
      for (std::size_t i = 0; i < blocks(); ++i) {
        current.blocks.push_back(with_kept(shared_[i % shared_.size()], i));
        current.blocks.back().input_RD = current.residual_RD[i];
        current.gradients.push_back(!kept_gradients          ? shared_gradients
                                    : shape_.keeps_on_host() ? gradient_turn(i)
                                                             : gradients());
      }
      if (shape_.keeps_on_host()) {
        current.host = on_host(current);
      }
      if (shape_.has_head()) {
        current.head = head();
      }
    }
    return memory;
  }

 private:
  std::size_t blocks() const { return shape_.blocks().end - shape_.blocks().begin; }

  void lay_out_rotary_tables(StageMemory& memory) {
    std::vector<RotaryTable>& tables = memory.rotary_tables;
    const Shape shape{shape_.config.context, shape_.config.attention.head_dim};
    for (int unit = shape_.blocks().begin; unit < shape_.blocks().end; ++unit) {
      const PositionTraits positions = shape_.config.layer(unit - 1).positions;
      auto known = std::ranges::find(tables, positions, &RotaryTable::positions);
      if (positions.are_rotary() && known == tables.end()) {
        known = tables.insert(tables.end(),
                              {positions, arena_.take(MemoryUse::workspace, DType::f32, shape)});
      }
      memory.rotary_PH.push_back(known == tables.end() ? TensorView() : known->table_PH);
    }
  }

  TensorView activation(std::int64_t rows, std::int64_t features) {
    return arena_.take(MemoryUse::activations, shape_.compute, Shape{rows, features});
  }
  TensorView hidden() { return activation(shape_.residual_rows, shape_.config.hidden); }
  TensorView workspace(std::int64_t elements) {
    return arena_.take(MemoryUse::workspace, shape_.compute, Shape{elements});
  }

  NormStatistics statistics() {
    NormStatistics result;
    const Shape rows{shape_.residual_rows};
    if (shape_.config.norm.kind == NormTraits::Kind::layer) {
      result.mean_R = arena_.take(MemoryUse::activations, DType::f32, rows);
    }
    result.rstd_R = arena_.take(MemoryUse::activations, DType::f32, rows);
    return result;
  }

  BatchMemory batch() {
    return {arena_,
            MemoryUse::activations,
            shape_.rows(),
            {.token = shape_.has_embedding(),
             .target = shape_.has_head(),
             .sample = shape_.trains() && shape_.config.dropout > 0}};
  }

  /// What the blocks of one group have that no slot keeps, and their inputs but the first.
  void share_activations() {
    const std::size_t group = std::min(shape_.recompute().group_blocks, blocks());
    for (std::size_t i = 0; i < group; ++i) {
      shared_.push_back(with_activations({}, shape_.kept().others()));
      if (i > 0) {
        shared_.back().input_RD = hidden();
      }
    }
  }

  /// One per block and one after; two that take turns when nothing is kept.
  std::vector<TensorView> residuals() {
    std::vector<TensorView> result;
    for (std::size_t i = 0; i <= blocks(); ++i) {
      const std::size_t in_group = i - shape_.recompute().group_begin(i);
      if (!shape_.trains()) {
        result.push_back(i < 2 ? hidden() : result[i - 2]);
      } else {
        result.push_back(input_is_in_turn(i)              ? input_turn(i)
                         : in_group == 0 || i == blocks() ? hidden()
                                                          : shared_[in_group].input_RD);
      }
    }
    return result;
  }

  bool input_is_in_turn(std::size_t i) const {
    return shape_.keeps_on_host() && 0 < i && i < blocks() &&
           shape_.recompute().group_begin(i) == i;
  }
  TensorView input_turn(std::size_t i) const {
    return input_turns_[(i / shape_.recompute().group_blocks - 1) % input_turns_.size()];
  }
  const ProductGradients& gradient_turn(std::size_t i) const {
    return gradient_turns_[i % gradient_turns_.size()];
  }

  /// While one block is computed, another's activations are on their way. All blocks of a group
  /// are made again at once.
  void make_turns() {
    const std::size_t group = shape_.recompute().group_blocks;
    const std::size_t groups = (blocks() + group - 1) / group;
    for (std::size_t i = 0; i < std::min(group + 1, blocks()); ++i) {
      turns_.push_back(with_activations({}, shape_.kept()));
      if (shape_.splits()) {
        gradient_turns_.push_back(gradients());
      }
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(2, groups - 1); ++i) {
      input_turns_.push_back(hidden());
    }
  }

  /// `shared` and what a slot keeps of block `i`, which is its own or in turn.
  BlockActivations with_kept(BlockActivations shared, std::size_t i) {
    if (!shape_.keeps_on_host()) {
      return with_activations(std::move(shared), shape_.kept());
    }
    for_each_piece(shape_.kept(), shared, turns_[i % turns_.size()],
                   [](TensorView& mine, const TensorView& in_turn) { mine = in_turn; });
    return shared;
  }

  /// As much on the host as `slot` has in turn.
  HostActivations on_host(const SlotMemory& slot) const {
    const auto take_like = [&](TensorView& mine, const TensorView& in_turn) {
      if (in_turn.shape().rank() > 0) {  // or absent
        mine = host_->take(MemoryUse::activations, in_turn.dtype(), in_turn.shape());
      }
    };
    HostActivations host;
    host.residual_RD.resize(blocks());
    host.blocks.resize(blocks());
    host.gradients.resize(blocks());
    for (std::size_t i = 0; i < blocks(); ++i) {
      if (input_is_in_turn(i)) {
        take_like(host.residual_RD[i], slot.residual_RD[i]);
      }
      for_each_piece(shape_.kept(), host.blocks[i], slot.blocks[i], take_like);
      if (shape_.splits()) {
        ProductGradients own = slot.gradients[i];
        if (shape_.config.feed_forward.gated) {
          own.activated_NF = {};
        }
        for_each_gradient(host.gradients[i], own, take_like);
      }
    }
    return host;
  }

  /// `result` with memory for the pieces of the given kinds.
  BlockActivations with_activations(BlockActivations result, const KeptActivations& kinds) {
    const std::int64_t rows = shape_.rows();
    if (kinds.products) {
      result.qkv_NQ = activation(rows, shape_.qkv_features());
      result.middle_RD = hidden();
    }
    if (kinds.up_product) {
      result.up_NU = activation(rows, shape_.up_features());
    }
    if (kinds.product_inputs) {
      result.attn_norm_RD = hidden();
      result.attended_NA = activation(rows, shape_.attended_features());
      result.mlp_norm_RD = hidden();
      result.activated_NF = activation(rows, shape_.sizes.ffn);
    }
    if (kinds.statistics) {
      result.attn_statistics = statistics();
      result.lse_NM =
          arena_.take(MemoryUse::activations, DType::f32, Shape{rows, shape_.sizes.heads});
      result.mlp_statistics = statistics();
    }
    return result;
  }

  /// Kept for backward_weight, or shared: then the gradient of the query/key/value product comes
  /// when that of the mlp's products is used up, and takes its place.
  ProductGradients gradients() {
    const std::int64_t rows = shape_.rows();
    const Shape activated{rows, shape_.sizes.ffn};
    const Shape qkv{rows, shape_.qkv_features()};
    ProductGradients result;
    if (shape_.splits()) {
      result.down_RD = hidden();
      result.out_RD = hidden();
      result.qkv_NQ = activation(rows, shape_.qkv_features());
      result.activated_NF = shape_.config.feed_forward.gated ? shared_activated_.reshape(activated)
                                                             : activation(rows, shape_.sizes.ffn);
      return result;
    }
    const TensorView wide = workspace(std::max(activated.elements(), qkv.elements()));
    result.activated_NF = {wide.data(), wide.dtype(), activated};
    result.qkv_NQ = {wide.data(), wide.dtype(), qkv};
    if (shape_.config.dropout > 0) {
      result.down_RD = workspace(shape_.residual_rows * shape_.config.hidden)
                           .reshape(Shape{shape_.residual_rows, shape_.config.hidden});
      result.out_RD = result.down_RD;
    }
    return result;
  }

  TensorView logits() { return activation(shape_.chunk_rows(), shape_.sizes.vocab_rows.count); }

  HeadActivations head() {
    HeadActivations result;
    result.norm_RD = hidden();
    result.statistics = statistics();
    result.logits_CV = shared_logits_ ? *shared_logits_ : logits();
    result.loss_N = arena_.take(MemoryUse::activations, DType::f32, Shape{shape_.rows()});
    return result;
  }

  /// A forward pass needs scratch only to sum into fewer rows.
  Scratch scratch() {
    const std::int64_t rows = shape_.rows();
    const std::int64_t hidden_size = shape_.config.hidden;
    const bool all_rows = shape_.residual_rows == rows;
    Scratch result;
    if (shape_.config.attention.qk_norm && blocks() > 0) {
      const std::int64_t heads = shape_.sizes.heads + shape_.sizes.kv_heads;
      result.plain = workspace(rows * shape_.attended_features());
      result.normed = workspace(rows * heads * shape_.config.attention.head_dim);
      result.rstd = arena_.take(MemoryUse::workspace, DType::f32, Shape{rows * heads});
    }
    if (!shape_.trains() && all_rows) {
      return result;
    }
    result.partial_ND = workspace(rows * std::max(hidden_size, shape_.attended_features()));
    result.summed_RD =
        all_rows ? TensorView(result.partial_ND.data(), shape_.compute, Shape{rows, hidden_size})
                 : workspace(shape_.residual_rows * hidden_size)
                       .reshape(Shape{shape_.residual_rows, hidden_size});
    if (shape_.trains()) {
      result.delta_NM =
          arena_.take(MemoryUse::workspace, DType::f32, Shape{rows, shape_.sizes.heads});
    }
    if (shape_.trains() && shape_.options.tiles && shape_.compute != DType::f32) {
      result.sums = arena_.take(MemoryUse::workspace, DType::f32, Shape{largest_input_gradient()});
    }
    return result;
  }

  /// Elements of what a product of this stage gives its input.
  std::int64_t largest_input_gradient() const {
    const std::int64_t of_head = shape_.has_head() ? shape_.chunk_rows() * shape_.config.hidden : 0;
    const std::int64_t widest =
        std::max({shape_.config.hidden, shape_.attended_features(), shape_.sizes.ffn});
    return std::max(of_head, blocks() > 0 ? shape_.rows() * widest : 0);
  }

  const StageShape& shape_;
  device::Arena& arena_;
  device::Arena* host_;
  std::vector<BlockActivations> shared_;  // of each block of a group
  std::vector<BlockActivations> turns_;   // activations on the host: places of what is kept
  std::vector<ProductGradients> gradient_turns_;
  std::vector<TensorView> input_turns_;
  TensorView shared_activated_;  // gated, split backward
  std::optional<TensorView> shared_logits_;
};

}  // namespace

device::Range StageShape::range_of(int unit) const {
  return device::Range([&]() -> std::string {
    return unit == 0             ? "embedding"
           : unit == head_unit() ? "head"
                                 : fmt::format("block {}", unit - 1);
  });
}

UnitRange StageShape::blocks() const noexcept {
  const int begin = std::max(units.begin, 1);
  return {begin, std::max(begin, std::min(units.end, head_unit()))};
}

BlockActivations BlockActivations::cut(const MicroBatchContext& pass) const {
  BlockActivations result;
  const std::int64_t residual = pass.residual.count;
  result.input_RD = first_rows(input_RD, residual);
  result.attn_norm_RD = first_rows(attn_norm_RD, residual);
  result.attn_statistics = first_rows(attn_statistics, residual);
  result.qkv_NQ = first_rows(qkv_NQ, pass.rows);
  result.attended_NA = first_rows(attended_NA, pass.rows);
  result.lse_NM = first_rows(lse_NM, pass.rows);
  result.middle_RD = first_rows(middle_RD, residual);
  result.mlp_norm_RD = first_rows(mlp_norm_RD, residual);
  result.mlp_statistics = first_rows(mlp_statistics, residual);
  result.up_NU = first_rows(up_NU, pass.rows);
  result.activated_NF = first_rows(activated_NF, pass.rows);
  return result;
}

ProductGradients ProductGradients::cut(const MicroBatchContext& pass) const {
  return {first_rows(down_RD, pass.residual.count), first_rows(activated_NF, pass.rows),
          first_rows(out_RD, pass.residual.count), first_rows(qkv_NQ, pass.rows)};
}

HeadActivations HeadActivations::cut(const MicroBatchContext& pass) const {
  return {first_rows(norm_RD, pass.residual.count), first_rows(statistics, pass.residual.count),
          first_rows(logits_CV, std::min(pass.rows, logits_CV.dim(0))),
          first_rows(loss_N, pass.rows)};
}

TensorView Scratch::partial(std::int64_t rows, std::int64_t features) const {
  FOURFOLD_EXPECT(rows * features <= partial_ND.elements());
  return {partial_ND.data(), partial_ND.dtype(), Shape{rows, features}};
}

StageMemory lay_out(const StageShape& shape, device::Arena& arena, device::Arena* host) {
  return Planner(shape, arena, host).write();
}

}  // namespace fourfold::model
