// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "activation_traffic.hpp"
#include "modules.hpp"
#include "stage_memory.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/range.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model/stage.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace fourfold::model {
namespace {

LocalSizes local_sizes(const Architecture& config, const Parameters& parameters) {
  std::vector<ParameterSpec> table;
  std::vector<Box> boxes;
  for (const Parameter& parameter : parameters) {
    table.push_back(parameter.spec);
    boxes.push_back(parameter.box);
  }
  return model::local_sizes(config, table, boxes);
}

bool in_tiles(const Parameters& parameters) {
  return std::ranges::any_of(parameters.layout().segments, [](const Segment& segment) {
    return segment.tile != WeightGroup::whole;
  });
}

}  // namespace

struct Stage::Impl {
  Impl(const Architecture& config_in, UnitRange units, const Parameters& parameters,
       ParallelHooks& hooks_in, device::Arena& arena, const StageOptions& options,
       device::Arena* host);

  void fill_rotary_tables() const;
  SlotMemory& slot(int index) {
    FOURFOLD_EXPECT(0 <= index && index < shape.options.slots);
    return memory.slots[index];
  }
  const MicroBatchContext& pass(int index) const { return passes[index]; }

  MicroBatchContext begin(int index, const Batch& batch, bool drops, device::StreamRef stream);
  /// Runs `body` while the weights of `unit` are in place.
  template <class Body>
  void with_weights(int unit, device::StreamRef stream, Body body) {
    hooks.acquire_weights(unit, stream);
    body();
    hooks.release_weights(unit, stream);
  }
  /// Likewise for the head, whose product may read a tied embedding.
  template <class Body>
  void with_head_weights(device::StreamRef stream, Body body) {
    with_weights(shape.head_unit(), stream, [&] {
      if (head->product_unit() == shape.head_unit()) {
        body();
      } else {
        with_weights(head->product_unit(), stream, body);
      }
    });
  }
  /// What the forward pass needs after block `i` - 1, and the backward pass in front of block
  /// `i`, is begun beside what is computed now.
  void ahead_forward(std::size_t i);
  void ahead_backward(std::size_t i);
  /// Into residual `i` + 1, or no further than the activations. @pre the weights are in place
  void forward_block(int index, std::size_t i, TensorView output_RD, device::StreamRef stream);
  void backward_block(int index, std::size_t i, WeightGradients when, device::StreamRef stream);
  /// @param keep  a backward pass will come
  void forward_to_output(int index, bool keep, device::StreamRef stream);
  void forward(int index, const Batch& batch, bool drops, std::optional<float> gradient_scale,
               device::StreamRef stream);
  void forward_head(int index, std::optional<float> gradient_scale, device::StreamRef stream);
  void forward_head_in_chunks(int index, std::optional<float> gradient_scale,
                              device::StreamRef stream);
  void backward_head(int index, WeightGradients when, Gradients state, device::StreamRef stream);
  void backward_head_in_chunks(int index, Gradients state, device::StreamRef stream);
  void backward(int index, WeightGradients when, Gradients state, device::StreamRef stream);
  void backward_weight(int index, Gradients state, device::StreamRef stream);
  void head_weight(int index, Gradients state, ConstTensorView next_RD, device::StreamRef stream);
  void embedding_weight(int index, Gradients state, device::StreamRef stream);
  int block_unit(std::size_t block) const { return shape.blocks().begin + static_cast<int>(block); }
  TensorView output(int index) { return slot(index).residual_RD.back(); }
  TensorView residual(int index, std::size_t place) {
    return slot(index).residual_RD[place].rows(0, pass(index).residual.count);
  }

  Architecture config;
  StageShape shape;
  ParallelHooks& hooks;
  StageMemory memory;
  ActivationTraffic traffic;
  std::optional<Embedding> embedding;
  std::vector<Block> blocks;
  std::optional<Head> head;
  std::vector<MicroBatchContext> passes;  // of each slot: what its forward pass was about
};

Stage::Impl::Impl(const Architecture& config_in, UnitRange units, const Parameters& parameters,
                  ParallelHooks& hooks_in, device::Arena& arena, const StageOptions& options,
                  device::Arena* host)
    : config(config_in),
      shape{config,
            units,
            local_sizes(config, parameters),
            parameters.compute_dtype(),
            options,
            hooks_in.residual_rows(options.sequences * options.tokens).count},
      hooks(hooks_in),
      passes(options.slots) {
  validate_for_device(config);
  FOURFOLD_EXPECT(0 <= units.begin && units.begin < units.end &&
                  units.end <= all_units(config).end);
  FOURFOLD_EXPECT(options.sequences > 0 && options.tokens > 0 && options.slots > 0);
  FOURFOLD_EXPECT(options.tokens <= config.context && options.recompute.group_blocks > 0);
  FOURFOLD_EXPECT(options.head_chunks > 0);
  FOURFOLD_EXPECT(options.tiles == in_tiles(parameters));
  FOURFOLD_EXPECT(host != nullptr || !options.activations_on_host);
  memory = lay_out(shape, arena, host);
  if (shape.keeps_on_host()) {
    traffic = ActivationTraffic(shape, memory);
  }
  if (arena.has_memory()) {
    fill_rotary_tables();
  }
  if (shape.has_embedding()) {
    embedding.emplace(shape, parameters, hooks);
  }
  for (int unit = shape.blocks().begin; unit < shape.blocks().end; ++unit) {
    blocks.emplace_back(shape, unit - 1, parameters, hooks);
  }
  if (shape.has_head()) {
    head.emplace(shape, parameters, hooks);
  }
}

void Stage::Impl::fill_rotary_tables() const {
  for (const auto& [positions, table_PH] : memory.rotary_tables) {
    const std::vector<float> table =
        rotary_table(positions, config.context, config.attention.head_dim);
    device::copy(table_PH.data(), table.data(), table_PH.bytes(), {});
  }
}

MicroBatchContext Stage::Impl::begin(int index, const Batch& batch, bool drops,
                                     device::StreamRef stream) {
  const SlotMemory& mine = slot(index);
  FOURFOLD_EXPECT(0 < batch.tokens && batch.tokens <= shape.options.tokens);
  FOURFOLD_EXPECT(0 < batch.sequences && batch.sequences * batch.tokens <= shape.rows());
  const bool with_dropout = drops && config.dropout > 0;
  Batch needed = batch;
  if (!with_dropout) {
    needed.sample_N = {};
  }
  MicroBatchContext pass{mine.batch.copy(needed, stream)};
  pass.deterministic_attention = shape.options.deterministic_attention;
  pass.rows = batch.sequences * batch.tokens;
  pass.residual = hooks.residual_rows(pass.rows);
  FOURFOLD_EXPECT(pass.residual.count <= shape.residual_rows);
  FOURFOLD_EXPECT(pass.position_N && (!embedding || pass.token_N));
  if (with_dropout) {
    FOURFOLD_EXPECT(pass.sample_N);
    pass.dropout.seed = shape.options.seed;
    pass.dropout.step = batch.step;
    pass.dropout.probability = static_cast<float>(config.dropout);
  }
  return pass;
}

void Stage::Impl::forward_block(int index, std::size_t i, TensorView output_RD,
                                device::StreamRef stream) {
  const MicroBatchContext& now = pass(index);
  blocks[i].forward(now, slot(index).blocks[i].cut(now), memory.scratch, memory.rotary_PH[i],
                    output_RD, stream);
}

void Stage::Impl::forward_to_output(int index, bool keep, device::StreamRef stream) {
  if (embedding) {
    const device::Range range = shape.range_of(0);
    with_weights(0, stream, [&] {
      ahead_forward(0);
      embedding->forward(pass(index), memory.scratch, residual(index, 0), stream);
    });
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const device::Range range = shape.range_of(block_unit(i));
    with_weights(block_unit(i), stream, [&] {
      ahead_forward(i + 1);
      traffic.before_forward(i, stream);
      forward_block(index, i, residual(index, i + 1), stream);
      traffic.after_forward(index, i, pass(index), keep, stream);
    });
  }
}

void Stage::Impl::ahead_forward(std::size_t i) {
  if (i < blocks.size()) {
    hooks.prefetch_weights(block_unit(i));
  } else if (head) {
    hooks.prefetch_weights(head->product_unit());
  }
}

void Stage::Impl::ahead_backward(std::size_t i) {
  if (i > 0) {
    const Recompute& recompute = shape.options.recompute;
    const bool again = recompute.runs_group_again(i - 1, blocks.size());
    hooks.prefetch_weights(block_unit(again ? recompute.group_begin(i - 1) : i - 1));
  }
}

void Stage::Impl::backward_block(int index, std::size_t i, WeightGradients when,
                                 device::StreamRef stream) {
  const device::Range range = shape.range_of(block_unit(i));
  const SlotMemory& mine = slot(index);
  const MicroBatchContext& now = pass(index);
  const BlockActivations kept = mine.blocks[i].cut(now);
  const Recompute& recompute = shape.options.recompute;
  const bool again = recompute.runs_group_again(i, blocks.size());
  traffic.before_backward(index, i, now, stream);
  for (std::size_t j = recompute.group_begin(i); again && j < i; ++j) {
    with_weights(block_unit(j), stream, [&] {
      hooks.prefetch_weights(block_unit(j + 1));
      traffic.before_again(j, stream);
      forward_block(index, j, residual(index, j + 1), stream);
    });
  }
  if (when == WeightGradients::now) {
    hooks.gradients_needed(block_unit(i), stream);
  }
  with_weights(block_unit(i), stream, [&] {
    ahead_backward(i);
    if (again) {
      forward_block(index, i, {}, stream);
    } else if (recompute.kind == Recompute::Kind::selective) {
      blocks[i].recompute(now, kept, memory.scratch, memory.rotary_PH[i], stream);
    }
    blocks[i].backward(now, kept, mine.gradients[i].cut(now), memory.scratch, memory.rotary_PH[i],
                       mine.dresidual_RD.rows(0, now.residual.count), when, stream);
  });
  traffic.after_backward(index, i, now, when, stream);
}

void Stage::Impl::forward(int index, const Batch& batch, bool drops,
                          std::optional<float> gradient_scale, device::StreamRef stream) {
  const MicroBatchContext now = begin(index, batch, drops, stream);
  passes[index] = now;
  forward_to_output(index, gradient_scale.has_value(), stream);
  if (shape.has_head_in_chunks()) {
    forward_head_in_chunks(index, gradient_scale, stream);
  } else if (head) {
    forward_head(index, gradient_scale, stream);
  }
}

void Stage::Impl::forward_head(int index, std::optional<float> gradient_scale,
                               device::StreamRef stream) {
  const device::Range range = shape.range_of(shape.head_unit());
  const MicroBatchContext& now = pass(index);
  FOURFOLD_EXPECT(now.target_N);
  const HeadActivations kept = slot(index).head.cut(now);
  const TensorView residual = output(index).rows(0, now.residual.count);
  with_head_weights(stream, [&] { head->forward(now, residual, kept, stream); });
  head->loss(now, kept, gradient_scale, stream);
}

/// In training the matrix is left alone until the backward pass.
void Stage::Impl::forward_head_in_chunks(int index, std::optional<float> gradient_scale,
                                         device::StreamRef stream) {
  const device::Range range = shape.range_of(shape.head_unit());
  MicroBatchContext& now = passes[index];
  FOURFOLD_EXPECT(now.target_N);
  const HeadActivations kept = slot(index).head.cut(now);
  with_weights(Segment::every_unit, stream,
               [&] { head->normalise(output(index).rows(0, now.residual.count), kept, stream); });
  if (gradient_scale) {
    now.gradient_scale = *gradient_scale;
  } else {
    with_head_weights(stream, [&] { head->loss_in_chunks(now, kept, stream); });
  }
}

void Stage::Impl::backward_head(int index, WeightGradients when, Gradients state,
                                device::StreamRef stream) {
  const device::Range range = shape.range_of(shape.head_unit());
  const MicroBatchContext& now = pass(index);
  const HeadActivations kept = slot(index).head.cut(now);
  const TensorView residual = output(index).rows(0, now.residual.count);
  const TensorView dresidual = slot(index).dresidual_RD.rows(0, now.residual.count);
  if (when == WeightGradients::now) {
    head->begin_weight(kept, stream);
  }
  with_head_weights(stream, [&] {
    ahead_backward(blocks.size());
    head->backward_input(now, residual, kept, memory.scratch, dresidual, stream);
  });
  if (when == WeightGradients::now) {
    head_weight(index, state, {}, stream);
  }
}

void Stage::Impl::backward_head_in_chunks(int index, Gradients state, device::StreamRef stream) {
  const device::Range range = shape.range_of(shape.head_unit());
  const MicroBatchContext& now = pass(index);
  const TensorView residual = output(index).rows(0, now.residual.count);
  const TensorView dresidual = slot(index).dresidual_RD.rows(0, now.residual.count);
  hooks.gradients_needed(head->product_unit(), stream);
  with_head_weights(stream, [&] {
    ahead_backward(blocks.size());
    head->backward_in_chunks(now, residual, slot(index).head.cut(now), memory.scratch, dresidual,
                             stream);
  });
  hooks.gradients_ready(shape.head_unit(), state, stream);
}

void Stage::Impl::backward(int index, WeightGradients when, Gradients state,
                           device::StreamRef stream) {
  const SlotMemory& mine = slot(index);
  const MicroBatchContext& now = pass(index);
  FOURFOLD_EXPECT(now.rows > 0);  // a forward pass came before
  const TensorView dresidual = mine.dresidual_RD.rows(0, now.residual.count);
  if (!blocks.empty()) {
    traffic.ahead_backward(index, blocks.size() - 1, now);
  }
  if (shape.has_head_in_chunks()) {
    backward_head_in_chunks(index, state, stream);
  } else if (head) {
    backward_head(index, when, state, stream);
  }
  for (std::size_t i = blocks.size(); i-- > 0;) {
    backward_block(index, i, when, stream);
    if (when == WeightGradients::now) {
      hooks.gradients_ready(block_unit(i), state, stream);
    }
  }
  if (embedding) {
    const device::Range range = shape.range_of(0);
    embedding->backward_input(now, dresidual, stream);
    if (when == WeightGradients::now) {
      embedding_weight(index, state, stream);
    }
  }
}

void Stage::Impl::backward_weight(int index, Gradients state, device::StreamRef stream) {
  const SlotMemory& mine = slot(index);
  const MicroBatchContext& now = pass(index);
  const auto first_gathered_by = [&](std::size_t blocks_left) -> ConstTensorView {
    if (blocks_left > 0 && traffic.moves()) {
      return {};  // it may still be on its way from the host
    }
    return blocks_left > 0 ? mine.gradients[blocks_left - 1].cut(now).down_RD
           : embedding     ? mine.dresidual_RD.rows(0, now.residual.count)
                           : TensorView();
  };
  if (!blocks.empty()) {
    traffic.ahead_weight(index, blocks.size() - 1, now);
  }
  if (head && !shape.has_head_in_chunks()) {
    const device::Range range = shape.range_of(shape.head_unit());
    head_weight(index, state, first_gathered_by(blocks.size()), stream);
  } else if (head && state == Gradients::complete) {  // its gradients came with those of inputs
    hooks.gradients_ready(shape.head_unit(), state, stream);
  }
  for (std::size_t i = blocks.size(); i-- > 0;) {
    const device::Range range = shape.range_of(block_unit(i));
    hooks.gradients_needed(block_unit(i), stream);
    traffic.before_weight(index, i, now, stream);
    blocks[i].backward_weight(mine.blocks[i].cut(now), mine.gradients[i].cut(now),
                              first_gathered_by(i), stream);
    traffic.after_weight(i, stream);
    hooks.gradients_ready(block_unit(i), state, stream);
  }
  if (embedding) {
    const device::Range range = shape.range_of(0);
    embedding_weight(index, state, stream);
  }
}

void Stage::Impl::head_weight(int index, Gradients state, ConstTensorView next_RD,
                              device::StreamRef stream) {
  hooks.gradients_needed(head->product_unit(), stream);
  head->backward_weight(slot(index).head.cut(pass(index)), next_RD, stream);
  hooks.gradients_ready(shape.head_unit(), state, stream);
}

void Stage::Impl::embedding_weight(int index, Gradients state, device::StreamRef stream) {
  const MicroBatchContext& now = pass(index);
  hooks.gradients_needed(0, stream);
  embedding->backward_weight(now, slot(index).dresidual_RD.rows(0, now.residual.count), stream);
  hooks.gradients_ready(0, state, stream);
}

Stage::Stage(const Architecture& config, UnitRange units, const Parameters& parameters,
             ParallelHooks& hooks, device::Arena& arena, const StageOptions& options,
             device::Arena* host)
    : impl_(std::make_unique<Impl>(config, units, parameters, hooks, arena, options, host)) {}
Stage::~Stage() = default;
Stage::Stage(Stage&&) noexcept = default;
Stage& Stage::operator=(Stage&&) noexcept = default;

bool Stage::has_embedding() const noexcept {
  return impl_->shape.has_embedding();
}
bool Stage::has_head() const noexcept {
  return impl_->shape.has_head();
}
bool Stage::finds_loss_backward() const noexcept {
  return impl_->shape.trains() && impl_->shape.has_head_in_chunks();
}

std::int64_t Stage::residual_rows(const Batch& batch) const {
  return impl_->hooks.residual_rows(batch.sequences * batch.tokens).count;
}

void Stage::forward_train(int slot, const Batch& batch, float gradient_scale,
                          device::StreamRef stream) {
  FOURFOLD_EXPECT(impl_->shape.trains());
  impl_->forward(slot, batch, true, gradient_scale, stream);
}

void Stage::forward_evaluate(int slot, const Batch& batch, device::StreamRef stream) {
  impl_->forward(slot, batch, false, std::nullopt, stream);
}

TensorView Stage::predict(const Batch& batch, std::int64_t row, device::StreamRef stream) {
  FOURFOLD_EXPECT(has_embedding() && has_head());
  MicroBatchContext& now = impl_->passes.front();
  now = impl_->begin(0, batch, false, stream);
  FOURFOLD_EXPECT(0 <= row && row < now.rows && now.residual.count == now.rows);
  impl_->forward_to_output(0, false, stream);
  MicroBatchContext last = now;
  last.sequences = last.tokens = last.rows = 1;
  last.residual = {0, 1};
  const HeadActivations kept = impl_->slot(0).head.cut(last);
  impl_->with_head_weights(
      stream, [&] { impl_->head->forward(last, impl_->output(0).rows(row, 1), kept, stream); });
  return kept.logits_CV;
}

void Stage::backward(int slot, Gradients state, device::StreamRef stream) {
  FOURFOLD_EXPECT(impl_->shape.trains());
  impl_->backward(slot, WeightGradients::now, state, stream);
}

void Stage::backward_input(int slot, device::StreamRef stream) {
  FOURFOLD_EXPECT(impl_->shape.trains() && impl_->shape.splits());
  impl_->backward(slot, WeightGradients::later, Gradients::partial, stream);
}

void Stage::backward_weight(int slot, Gradients state, device::StreamRef stream) {
  FOURFOLD_EXPECT(impl_->shape.trains() && impl_->shape.splits());
  impl_->backward_weight(slot, state, stream);
}

TensorView Stage::input(int slot) const {
  return impl_->slot(slot).residual_RD.front();
}
TensorView Stage::output(int slot) const {
  return impl_->output(slot);
}
TensorView Stage::output_gradient(int slot) const {
  return impl_->slot(slot).dresidual_RD;
}
TensorView Stage::input_gradient(int slot) const {
  return impl_->slot(slot).dresidual_RD;
}

TensorView Stage::loss(int slot) const {
  FOURFOLD_EXPECT(has_head());
  return impl_->slot(slot).head.loss_N.rows(0, impl_->pass(slot).rows);
}

TensorView Stage::logits(int slot) const {
  FOURFOLD_EXPECT(has_head() && !impl_->shape.has_head_in_chunks());
  return impl_->slot(slot).head.logits_CV.rows(0, impl_->pass(slot).rows);
}

}  // namespace fourfold::model
