// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/parallel/mesh_seams.hpp>

namespace fourfold::parallel {
MeshSeams::MeshSeams(comm::Mesh& mesh, const TensorParallelOptions& tensor,
                     const ContextParallelOptions& context, device::Arena& arena)
    : mesh_(&mesh),
      tp_(mesh.axis(comm::Axis::tp)),
      cp_(mesh.axis(comm::Axis::cp)),
      tensor_(tp_, tensor, arena),
      context_(context_parallel(cp_, context, arena)) {}

void MeshSeams::record_into(CollectiveRecorder* recorder) noexcept {
  tp_.record_into(recorder);
  cp_.record_into(recorder);
}

void MeshSeams::show_products_to(model::ProductObserver* observer) {
  Seams::show_products_to(observer);
  if (context_) {
    context_->show_products_to(observer);
  }
}

Range MeshSeams::residual_rows(std::int64_t rows) const {
  return tensor_.residual_rows(rows);
}

bool MeshSeams::adds_once() const {
  return tensor_.adds_once();
}

ConstTensorView MeshSeams::gather_rows(ConstTensorView x_RD, std::int64_t rows,
                                       device::StreamRef stream) {
  return tensor_.gather_rows(x_RD, rows, stream);
}

void MeshSeams::gather_ahead(ConstTensorView x_RD, std::int64_t rows, device::StreamRef stream) {
  tensor_.gather_ahead(x_RD, rows, stream);
}

void MeshSeams::reduce_rows(TensorView partial_TD, TensorView y_RD, device::StreamRef stream) {
  tensor_.reduce_rows(partial_TD, y_RD, stream);
}

void MeshSeams::attention(const kernels::AttentionShape& shape, kernels::ConstHeads q,
                          kernels::ConstHeads k, kernels::ConstHeads v, kernels::Heads out,
                          float* lse_BNT, device::StreamRef stream) {
  if (context_) {
    context_->attention(shape, q, k, v, out, lse_BNT, stream);
  } else {
    Seams::attention(shape, q, k, v, out, lse_BNT, stream);
  }
}

void MeshSeams::attention_backward(const kernels::AttentionShape& shape, kernels::ConstHeads q,
                                   kernels::ConstHeads k, kernels::ConstHeads v,
                                   kernels::ConstHeads out, kernels::ConstHeads dout,
                                   const float* lse_BNT, float* delta_BNT, kernels::Heads dq,
                                   kernels::Heads dk, kernels::Heads dv, device::StreamRef stream) {
  if (context_) {
    context_->attention_backward(shape, q, k, v, out, dout, lse_BNT, delta_BNT, dq, dk, dv, stream);
  } else {
    Seams::attention_backward(shape, q, k, v, out, dout, lse_BNT, delta_BNT, dq, dk, dv, stream);
  }
}

void MeshSeams::cross_entropy(model::VocabularyPart part, TensorView logits_TV,
                              ConstTensorView target_T, TensorView loss_T,
                              std::optional<float> gradient_scale, device::StreamRef stream) {
  if (tensor_.alone()) {
    Seams::cross_entropy(part, logits_TV, target_T, loss_T, gradient_scale, stream);
  } else {
    tensor_.cross_entropy(part, logits_TV, target_T, loss_T, gradient_scale, stream);
  }
}

/// All modes on the cp axis send from buffers of their own and receive in them; between stages go
/// the activations themselves.
MovedMemories MeshSeams::moved_memory() const {
  MovedMemories moved = tensor_.moved_memory();
  add_moved(moved, mesh_->axis(comm::Axis::cp), {device::MemoryUse::communication});
  add_moved(moved, mesh_->axis(comm::Axis::pp), {device::MemoryUse::activations});
  return moved;
}

}  // namespace fourfold::parallel
