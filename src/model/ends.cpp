// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The two ends of a model: embeddings in front of the blocks, norm, head and loss behind them.
#include "units.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/embedding.hpp>

namespace fourfold::model {

Embedding::Embedding(const StageShape& shape, const Parameters& parameters, Seams& seams)
    : token_(&parameters.at(token_embedding_name)),
      position_(parameters.find("embedding.position.weight")),
      layers_(shape.config.layers),
      seams_(seams) {
  FOURFOLD_EXPECT((position_ != nullptr) == (shape.config.family == Family::gpt2));
}

void Embedding::forward(const Pass& pass, const Scratch& scratch, TensorView y_RD,
                        device::StreamRef stream) const {
  const TensorView partial = partial_of(y_RD, pass, scratch);
  ConstTensorView positions;
  if (position_ != nullptr && seams_.adds_once()) {
    positions = position_->weight;
  }
  kernels::embedding(pass.token_N, token_->weight, token_->box.offset[0], positions,
                     pass.position_N, partial, stream);
  seams_.reduce_rows(partial, y_RD, stream);
  if (pass.drops()) {
    pass.drop_and_add(embedding_dropout_site(layers_), y_RD, {}, y_RD, stream);
  }
}

void Embedding::backward_input(const Pass& pass, TensorView dy_RD, device::StreamRef stream) const {
  if (pass.drops()) {
    pass.drop_backward(embedding_dropout_site(layers_), dy_RD, dy_RD, stream);
  }
}

void Embedding::backward_weight(const Pass& pass, ConstTensorView dy_RD,
                                device::StreamRef stream) const {
  kernels::embedding_backward(pass.token_N, seams_.gather_rows(dy_RD, pass.rows, stream),
                              token_->box.offset[0], token_->gradient, pass.position_N,
                              position_ != nullptr ? position_->gradient : TensorView{}, stream);
}

Head::Head(const StageShape& shape, const Parameters& parameters, Seams& seams)
    : norm_(shape.config, parameters, "final_norm"),
      product_(parameters, {shape.config.tie_embeddings ? "embedding.token" : "lm_head"}),
      part_{shape.sizes.vocab_rows.begin, shape.config.vocab},
      seams_(seams) {
  FOURFOLD_EXPECT(product_.out_features() == shape.sizes.vocab_rows.count);
}

void Head::forward(const Pass& pass, ConstTensorView residual_RD, const HeadActivations& kept,
                   device::StreamRef stream) const {
  FOURFOLD_EXPECT(residual_RD.dim(0) == pass.residual.count);
  norm_.forward(residual_RD, kept.norm_RD, kept.statistics, stream);
  product_.forward(seams_.gather_rows(kept.norm_RD, pass.rows, stream), kept.logits_NV, true,
                   stream);
}

void Head::loss(const Pass& pass, const HeadActivations& kept, std::optional<float> gradient_scale,
                device::StreamRef stream) const {
  seams_.cross_entropy(part_, kept.logits_NV, pass.target_N, kept.loss_N, gradient_scale, stream);
}

void Head::begin_weight(const HeadActivations& kept, device::StreamRef stream) const {
  seams_.gather_ahead(kept.norm_RD, kept.logits_NV.dim(0), stream);
}

void Head::backward_input(const Pass& pass, ConstTensorView residual_RD,
                          const HeadActivations& kept, const Scratch& scratch,
                          TensorView dresidual_RD, device::StreamRef stream) const {
  const TensorView summed = scratch.summed_RD.rows(0, pass.residual.count);
  const TensorView partial = partial_of(summed, pass, scratch);
  product_.backward_input(kept.logits_NV, partial, stream);
  seams_.reduce_rows(partial, summed, stream);
  device::zero(dresidual_RD.data(), dresidual_RD.bytes(), stream);
  norm_.backward(summed, residual_RD, kept.statistics, dresidual_RD, stream);
}

void Head::backward_weight(const HeadActivations& kept, ConstTensorView next_RD,
                           device::StreamRef stream) const {
  const std::int64_t rows = kept.logits_NV.dim(0);
  const ConstTensorView norm = gather_then_ahead(seams_, kept.norm_RD, next_RD, rows, stream);
  product_.backward_weight(norm, kept.logits_NV, stream);
}

}  // namespace fourfold::model
