// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/cross_entropy.hpp>
#include <fourfold/model/parallel_hooks.hpp>

namespace fourfold::model {

void attend(const AttentionMatmul& product, MatmulObserver* observer, device::StreamRef stream) {
  make_observed(observer, product, stream, [&] {
    const auto attention = product.merges ? kernels::attention_merge : kernels::attention;
    attention(product.shape, product.q, product.k, product.v, product.out, product.lse_BNT, stream);
  });
}

void differentiate_attention_part(const kernels::AttentionGradients& product,
                                  MatmulObserver* observer, device::StreamRef stream) {
  make_observed(observer, product, stream, [&] {
    kernels::attention_backward_part(product.shape, product.q, product.k, product.v, product.out,
                                     product.dout, product.lse_BNT, product.delta_BNT, product.dq,
                                     product.write_dq, product.dk, product.dv, product.write_dkv,
                                     stream);
  });
}

Range ParallelHooks::residual_rows(std::int64_t rows) const {
  return {0, rows};
}

bool ParallelHooks::adds_once() const {
  return true;
}

ConstTensorView ParallelHooks::gather_rows(ConstTensorView x_RD, std::int64_t /*rows*/,
                                           device::StreamRef /*stream*/) {
  return x_RD;
}

void ParallelHooks::prefetch_rows(ConstTensorView /*x_RD*/, std::int64_t /*rows*/,
                                  device::StreamRef /*stream*/) {}

void ParallelHooks::reduce_rows(TensorView partial_TD, TensorView y_RD,
                                device::StreamRef /*stream*/) {
  FOURFOLD_EXPECT(partial_TD.data() == y_RD.data());
}

void ParallelHooks::attention(const kernels::AttentionShape& shape, kernels::ConstHeads q,
                              kernels::ConstHeads k, kernels::ConstHeads v, kernels::Heads out,
                              float* lse_BNT, device::StreamRef stream) {
  attend({shape, q, k, v, out, lse_BNT}, matmul_observer_, stream);
}

void ParallelHooks::attention_backward(const kernels::AttentionShape& shape, kernels::ConstHeads q,
                                       kernels::ConstHeads k, kernels::ConstHeads v,
                                       kernels::ConstHeads out, kernels::ConstHeads dout,
                                       const float* lse_BNT, float* delta_BNT, kernels::Heads dq,
                                       kernels::Heads dk, kernels::Heads dv,
                                       device::StreamRef stream) {
  const kernels::AttentionGradients product{
      shape, q, k, v, out, dout, lse_BNT, nullptr, dq, kernels::Write::replace, dk, dv};
  make_observed(matmul_observer_, product, stream, [&] {
    kernels::attention_backward(shape, q, k, v, out, dout, lse_BNT, delta_BNT, dq, dk, dv, stream);
  });
}

void ParallelHooks::cross_entropy(VocabularyPart part, TensorView logits_TV,
                                  ConstTensorView target_T, TensorView loss_T,
                                  std::optional<float> gradient_scale, device::StreamRef stream) {
  FOURFOLD_EXPECT(part.first_column == 0 && part.vocabulary == logits_TV.dim(1));
  if (gradient_scale) {
    kernels::cross_entropy_forward_backward(logits_TV, target_T, loss_T, part.vocabulary,
                                            *gradient_scale, stream);
  } else {
    kernels::cross_entropy(logits_TV, target_T, loss_T, part.vocabulary, stream);
  }
}

void ParallelHooks::acquire_weights(WeightGroup /*part*/, device::StreamRef /*stream*/) {}

void ParallelHooks::release_weights(WeightGroup /*part*/, device::StreamRef /*stream*/) {}

void ParallelHooks::prefetch_weights(WeightGroup /*part*/) {}

void ParallelHooks::gradients_needed(WeightGroup /*part*/, device::StreamRef /*stream*/) {}

void ParallelHooks::gradients_ready(WeightGroup /*part*/, Gradients /*state*/,
                                    device::StreamRef /*stream*/) {}

}  // namespace fourfold::model
