// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/parallel/mesh_hooks.hpp>

namespace fourfold::parallel {
MeshHooks::MeshHooks(comm::Mesh& mesh, const TensorParallelOptions& tensor,
                     const ContextParallelOptions& context, device::Arena& arena)
    : TensorParallel(mesh.axis(comm::Axis::tp), tensor, arena),
      mesh_(&mesh),
      cp_(mesh.axis(comm::Axis::cp)),
      context_(context_parallel(cp_, context, arena)) {}

void MeshHooks::record_into(CollectiveRecorder* recorder) noexcept {
  TensorParallel::record_into(recorder);
  cp_.record_into(recorder);
}

void MeshHooks::show_products_to(model::MatmulObserver* observer) {
  ParallelHooks::show_products_to(observer);
  if (context_) {
    context_->show_products_to(observer);
  }
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

/// All modes on the cp axis send from buffers of their own and receive in them; between stages go
/// the activations themselves.
MovedMemories MeshHooks::moved_memory() const {
  MovedMemories moved = TensorParallel::moved_memory();
  add_moved(moved, mesh_->axis(comm::Axis::cp), {device::MemoryUse::communication});
  add_moved(moved, mesh_->axis(comm::Axis::pp), {device::MemoryUse::activations});
  return moved;
}

}  // namespace fourfold::parallel
