// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/parallel/mesh_seams.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fourfold::parallel {
namespace {

/// The memory of the units in the order in which a step completes them.
std::vector<Range> memory_of(const std::vector<int>& units, const model::Parameters& parameters) {
  std::vector<Range> order;
  for (const int unit : units) {
    const auto found = std::ranges::find(parameters.units(), unit, &model::UnitMemory::unit);
    order.push_back(found == parameters.units().end() ? Range{} : found->flat);
  }
  return order;
}

/// The ranks of the pp axis that hold the tied embedding, for those that do; others alone.
std::unique_ptr<comm::Communicator> tie_of(const StageLayout& stages, comm::Communicator& pp,
                                           const model::Parameters& parameters) {
  const model::Parameter* const held = parameters.find(model::token_embedding_name);
  std::vector<int> members{pp.rank()};
  if (stages.tied && held != nullptr) {
    members = stages.token_embedding_holders();
  }
  return pp.subgroup(members, "pp.tied");
}

std::int64_t bucket_bytes(double megabytes) {
  return std::max<std::int64_t>(4, static_cast<std::int64_t>(megabytes * 1e6));
}

}  // namespace

MeshSeams::MeshSeams(const model::ModelConfig& config, const StageLayout& stages, comm::Mesh& mesh,
                     const model::Parameters& parameters, const TensorParallelOptions& tensor,
                     const ContextParallelOptions& context, double bucket_mb, device::Arena& arena)
    : tensor_(mesh.axis(comm::Axis::tp), tensor, arena),
      context_(context_parallel(mesh.axis(comm::Axis::cp), context, arena)),
      replicas_(config, mesh.axis(comm::Axis::tp), parameters, tensor.sequence_parallel),
      reduces_(mesh.data_plane().size() > 1),
      finishing_units_(stages.finishing_units(mesh.coordinate().pp)),
      tie_(tie_of(stages, mesh.axis(comm::Axis::pp), parameters)),
      buckets_(mesh.data_plane(), parameters.gradients(), memory_of(finishing_units_, parameters),
               bucket_bytes(bucket_mb)) {
  if (tie_->size() > 1) {
    tied_gradient_ = parameters.at(model::token_embedding_name).gradient;
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

void MeshSeams::gradients_ready(int unit, model::Gradients state, device::StreamRef stream) {
  if (state != model::Gradients::complete) {
    return;
  }
  ready_units_.push_back(unit);
  while (finished_ < finishing_units_.size() &&
         std::erase(ready_units_, finishing_units_[finished_]) > 0) {
    replicas_.sum(finishing_units_[finished_], stream);
    if (reduces_) {
      buckets_.next_ready(stream);
    }
    ++finished_;
  }
}

void MeshSeams::wait_all(device::StreamRef stream) {
  FOURFOLD_EXPECT(finished_ == 0 || finished_ == finishing_units_.size());
  finished_ = 0;
  buckets_.wait_all(stream);
  // Last, so that both copies are the same bits on every rank of the data plane.
  if (tied_gradient_) {
    tie_->all_reduce(tied_gradient_, comm::ReduceOp::sum, stream).wait(stream);
  }
}

}  // namespace fourfold::parallel
