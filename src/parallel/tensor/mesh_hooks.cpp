// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/parallel/mesh_hooks.hpp>

namespace fourfold::parallel {
MeshHooks::MeshHooks(comm::Mesh& mesh, const TensorParallelOptions& tensor,
                     const ContextParallelOptions& context, device::Arena& arena)
    : mesh_(&mesh),
      tp_(mesh.axis(comm::Axis::tp)),
      cp_(mesh.axis(comm::Axis::cp)),
      tensor_(tp_, tensor, arena),
      context_(context_parallel(cp_, context, arena)) {}

void MeshHooks::record_into(CollectiveRecorder* recorder) noexcept {
  tp_.record_into(recorder);
  cp_.record_into(recorder);
}

void MeshHooks::show_products_to(model::MatmulObserver* observer) {
  ParallelHooks::show_products_to(observer);
  if (context_) {
    context_->show_products_to(observer);
  }
}

Range MeshHooks::residual_rows(std::int64_t rows) const {
  return tensor_.residual_rows(rows);
}

bool MeshHooks::adds_once() const {
  return tensor_.adds_once();
}

ConstTensorView MeshHooks::gather_rows(ConstTensorView x_RD, std::int64_t rows,
                                       device::StreamRef stream) {
  return tensor_.gather_rows(x_RD, rows, stream);
}

void MeshHooks::prefetch_rows(ConstTensorView x_RD, std::int64_t rows, device::StreamRef stream) {
  tensor_.prefetch_rows(x_RD, rows, stream);
}

void MeshHooks::reduce_rows(TensorView partial_TD, TensorView y_RD, device::StreamRef stream) {
  tensor_.reduce_rows(partial_TD, y_RD, stream);
}

void MeshHooks::attention(const kernels::AttentionShape& shape, kernels::ConstHeads q,
                          kernels::ConstHeads k, kernels::ConstHeads v, kernels::Heads out,
                          float* lse_BNT, device::StreamRef stream) {
  if (context_) {
    context_->attention(shape, q, k, v, out, lse_BNT, stream);
  } else {
    ParallelHooks::attention(shape, q, k, v, out, lse_BNT, stream);
  }
}

void MeshHooks::attention_backward(const kernels::AttentionShape& shape, kernels::ConstHeads q,
                                   kernels::ConstHeads k, kernels::ConstHeads v,
                                   kernels::ConstHeads out, kernels::ConstHeads dout,
                                   const float* lse_BNT, float* delta_BNT, kernels::Heads dq,
                                   kernels::Heads dk, kernels::Heads dv, device::StreamRef stream) {
  if (context_) {
    context_->attention_backward(shape, q, k, v, out, dout, lse_BNT, delta_BNT, dq, dk, dv, stream);
  } else {
    ParallelHooks::attention_backward(shape, q, k, v, out, dout, lse_BNT, delta_BNT, dq, dk, dv,
                                      stream);
  }
}

void MeshHooks::cross_entropy(model::VocabularyPart part, TensorView logits_TV,
                              ConstTensorView target_T, TensorView loss_T,
                              std::optional<float> gradient_scale, device::StreamRef stream) {
  if (tensor_.alone()) {
    ParallelHooks::cross_entropy(part, logits_TV, target_T, loss_T, gradient_scale, stream);
  } else {
    tensor_.cross_entropy(part, logits_TV, target_T, loss_T, gradient_scale, stream);
  }
}

/// All modes on the cp axis send from buffers of their own and receive in them; between stages go
/// the activations themselves.
MovedMemories MeshHooks::moved_memory() const {
  MovedMemories moved = tensor_.moved_memory();
  add_moved(moved, mesh_->axis(comm::Axis::cp), {device::MemoryUse::communication});
  add_moved(moved, mesh_->axis(comm::Axis::pp), {device::MemoryUse::activations});
  return moved;
}

}  // namespace fourfold::parallel
