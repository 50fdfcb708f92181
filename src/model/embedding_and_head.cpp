// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The two ends of a model: embeddings in front of the blocks, norm, head and loss after them.
#include "modules.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/embedding.hpp>

#include <algorithm>

namespace fourfold::model {

Embedding::Embedding(const StageShape& shape, const Parameters& parameters, ParallelHooks& hooks)
    : token_(&parameters.at(token_embedding_name)),
      position_(parameters.find("embedding.position.weight")),
      layers_(shape.config.layers),
      hooks_(hooks) {
  FOURFOLD_EXPECT((position_ != nullptr) ==
                  (shape.config.positions.kind == PositionTraits::Kind::learned));
  token_tiles_ = tiles_of(parameters, token_->flat, shape.config.hidden);
  if (position_ != nullptr) {
    position_tiles_ = tiles_of(parameters, position_->flat, shape.config.hidden);
  }
}

void Embedding::look_up(const MicroBatchContext& pass, TensorView partial_ND,
                        device::StreamRef stream) const {
  ConstTensorView positions;
  if (position_ != nullptr && hooks_.adds_once()) {
    positions = position_->weight;
  }
  kernels::embedding(pass.token_N, token_->weight, token_->box.offset[0], positions,
                     pass.position_N, partial_ND, stream);
}

void Embedding::look_up_in_tiles(const MicroBatchContext& pass, TensorView partial_ND,
                                 device::StreamRef stream) const {
  device::zero(partial_ND.data(), partial_ND.bytes(), stream);
  for_each_tile(token_tiles_, Order::forward, hooks_, stream, [&](const Tile& tile) {
    kernels::embedding_add(pass.token_N, tile.weight_OI, token_->box.offset[0] + tile.rows.begin,
                           partial_ND, stream);
  });
  if (hooks_.adds_once()) {
    for_each_tile(position_tiles_, Order::forward, hooks_, stream, [&](const Tile& tile) {
      kernels::embedding_add(pass.position_N, tile.weight_OI, tile.rows.begin, partial_ND, stream);
    });
  }
}

void Embedding::forward(const MicroBatchContext& pass, const Scratch& scratch, TensorView y_RD,
                        device::StreamRef stream) const {
  const TensorView partial = partial_of(y_RD, pass, scratch);
  if (token_tiles_.empty()) {
    look_up(pass, partial, stream);
  } else {
    look_up_in_tiles(pass, partial, stream);
  }
  hooks_.reduce_rows(partial, y_RD, stream);
  if (pass.drops()) {
    pass.drop_and_add(embedding_dropout_site(layers_), y_RD, {}, y_RD, stream);
  }
}

void Embedding::backward_input(const MicroBatchContext& pass, TensorView dy_RD,
                               device::StreamRef stream) const {
  if (pass.drops()) {
    pass.drop_backward(embedding_dropout_site(layers_), dy_RD, dy_RD, stream);
  }
}

void Embedding::backward_weight(const MicroBatchContext& pass, ConstTensorView dy_RD,
                                device::StreamRef stream) const {
  const ConstTensorView dy_ND = hooks_.gather_rows(dy_RD, pass.rows, stream);
  if (token_tiles_.empty()) {
    kernels::embedding_backward(pass.token_N, dy_ND, token_->box.offset[0], token_->gradient,
                                pass.position_N,
                                position_ != nullptr ? position_->gradient : TensorView{}, stream);
    return;
  }
  for_each_tile_gradient(position_tiles_, hooks_, stream, [&](const Tile& tile) {
    kernels::embedding_backward(pass.position_N, dy_ND, tile.rows.begin, tile.gradient_OI, {}, {},
                                stream);
  });
  for_each_tile_gradient(token_tiles_, hooks_, stream, [&](const Tile& tile) {
    kernels::embedding_backward(pass.token_N, dy_ND, token_->box.offset[0] + tile.rows.begin,
                                tile.gradient_OI, {}, {}, stream);
  });
}

Head::Head(const StageShape& shape, const Parameters& parameters, ParallelHooks& hooks)
    : norm_(shape.config.norm, parameters, "final_norm"),
      product_(parameters, {shape.config.tie_embeddings ? "embedding.token" : "lm_head"}, hooks),
      part_{shape.sizes.vocab_rows.begin, shape.config.vocab},
      rows_(shape.rows()),
      chunk_rows_(shape.chunk_rows()),
      hooks_(hooks) {
  FOURFOLD_EXPECT(product_.out_features() == shape.sizes.vocab_rows.count);
}

void Head::normalise(ConstTensorView residual_RD, const HeadActivations& kept,
                     device::StreamRef stream) const {
  norm_.forward(residual_RD, kept.norm_RD, kept.statistics, stream);
}

void Head::forward(const MicroBatchContext& pass, ConstTensorView residual_RD,
                   const HeadActivations& kept, device::StreamRef stream) const {
  FOURFOLD_EXPECT(residual_RD.dim(0) == pass.residual.count);
  FOURFOLD_EXPECT(kept.logits_CV.dim(0) == pass.rows);
  normalise(residual_RD, kept, stream);
  product_.forward(hooks_.gather_rows(kept.norm_RD, pass.rows, stream), kept.logits_CV, true,
                   stream);
}

void Head::loss(const MicroBatchContext& pass, const HeadActivations& kept,
                std::optional<float> gradient_scale, device::StreamRef stream) const {
  hooks_.cross_entropy(part_, kept.logits_CV, pass.target_N, kept.loss_N, gradient_scale, stream);
}

void Head::begin_weight(const HeadActivations& kept, device::StreamRef stream) const {
  hooks_.prefetch_rows(kept.norm_RD, kept.logits_CV.dim(0), stream);
}

TensorView Head::norm_gradient(const MicroBatchContext& pass, const Scratch& scratch) const {
  return partial_of(scratch.summed_RD.rows(0, pass.residual.count), pass, scratch);
}

void Head::backward_norm(const MicroBatchContext& pass, ConstTensorView residual_RD,
                         const HeadActivations& kept, const Scratch& scratch,
                         TensorView dresidual_RD, device::StreamRef stream) const {
  const TensorView summed = scratch.summed_RD.rows(0, pass.residual.count);
  hooks_.reduce_rows(norm_gradient(pass, scratch), summed, stream);
  device::zero(dresidual_RD.data(), dresidual_RD.bytes(), stream);
  norm_.backward(summed, residual_RD, kept.statistics, dresidual_RD, stream);
}

void Head::backward_input(const MicroBatchContext& pass, ConstTensorView residual_RD,
                          const HeadActivations& kept, const Scratch& scratch,
                          TensorView dresidual_RD, device::StreamRef stream) const {
  product_.backward_input(kept.logits_CV, norm_gradient(pass, scratch), scratch.sums, stream);
  backward_norm(pass, residual_RD, kept, scratch, dresidual_RD, stream);
}

void Head::backward_weight(const HeadActivations& kept, ConstTensorView next_RD,
                           device::StreamRef stream) const {
  const std::int64_t rows = kept.logits_CV.dim(0);
  const ConstTensorView norm = gather_then_prefetch(hooks_, kept.norm_RD, next_RD, rows, stream);
  product_.backward_weight(norm, kept.logits_CV, stream);
}

template <class Use>
void Head::for_each_chunk(const MicroBatchContext& pass, const HeadActivations& kept,
                          device::StreamRef stream, const Use& use) const {
  const ConstTensorView norm_ND = hooks_.gather_rows(kept.norm_RD, pass.rows, stream);
  for (std::int64_t begin = 0; begin < rows_; begin += chunk_rows_) {
    const Range rows{begin, std::min(chunk_rows_, pass.rows - begin)};
    if (rows.count <= 0) {  // of an evaluation's last batch, which is smaller on some ranks
      product_.forward_nothing(stream);
      continue;
    }
    const ConstTensorView norm_CD = norm_ND.rows(rows.begin, rows.count);
    const TensorView logits_CV = kept.logits_CV.rows(0, rows.count);
    product_.forward(norm_CD, logits_CV, true, stream);
    use(rows, norm_CD, logits_CV);
  }
}

void Head::chunk_loss(Range rows, TensorView logits_CV, const MicroBatchContext& pass,
                      const HeadActivations& kept, std::optional<float> gradient_scale,
                      device::StreamRef stream) const {
  hooks_.cross_entropy(part_, logits_CV, pass.target_N.rows(rows.begin, rows.count),
                       kept.loss_N.rows(rows.begin, rows.count), gradient_scale, stream);
}

void Head::loss_in_chunks(const MicroBatchContext& pass, const HeadActivations& kept,
                          device::StreamRef stream) const {
  for_each_chunk(pass, kept, stream,
                 [&](Range rows, ConstTensorView /*norm_CD*/, TensorView logits_CV) {
                   chunk_loss(rows, logits_CV, pass, kept, {}, stream);
                 });
}

void Head::backward_in_chunks(const MicroBatchContext& pass, ConstTensorView residual_RD,
                              const HeadActivations& kept, const Scratch& scratch,
                              TensorView dresidual_RD, device::StreamRef stream) const {
  const TensorView dnorm_ND = norm_gradient(pass, scratch);
  const auto go_back = [&](Range rows, ConstTensorView norm_CD, TensorView logits_CV) {
    chunk_loss(rows, logits_CV, pass, kept, pass.gradient_scale, stream);
    product_.backward_input(logits_CV, dnorm_ND.rows(rows.begin, rows.count), scratch.sums, stream);
    product_.backward_weight(norm_CD, logits_CV, stream);
  };
  for_each_chunk(pass, kept, stream, go_back);
  backward_norm(pass, residual_RD, kept, scratch, dresidual_RD, stream);
}

}  // namespace fourfold::model
