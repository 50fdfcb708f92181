// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/model/model_config.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/model/seams.hpp>
#include <fourfold/parallel/context_parallel.hpp>
#include <fourfold/parallel/gradient_buckets.hpp>
#include <fourfold/parallel/replica_sums.hpp>
#include <fourfold/parallel/stage_layout.hpp>
#include <fourfold/parallel/tensor_parallel.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace fourfold::parallel {

/// The seams of one rank of a mesh: activations meet on the tp axis, queries and keys on the cp
/// axis, gradients first on the tp axis (where replicas hold addends), then over the data plane,
/// and last, for a tied embedding that two pipeline stages hold, between these two. Axes of degree
/// 1 send nothing.
class MeshSeams : public model::Seams {
 public:
  /// Collective over the mesh. Everything is borrowed.
  /// @param parameters  those of this rank: tensor_boxes(config, table, tp, rank)
  /// @param stages      of all ranks of the pp axis
  /// @param bucket_mb   gradients are reduced in pieces of about this many 10^6 bytes
  MeshSeams(const model::ModelConfig& config, const StageLayout& stages, comm::Mesh& mesh,
            const model::Parameters& parameters, const TensorParallelOptions& tensor,
            const ContextParallelOptions& context, double bucket_mb, device::Arena& arena);

  Range residual_rows(std::int64_t rows) const override;
  bool adds_once() const override;
  ConstTensorView gather_rows(ConstTensorView x_RD, std::int64_t rows,
                              device::StreamRef stream) override;
  void gather_ahead(ConstTensorView x_RD, std::int64_t rows, device::StreamRef stream) override;
  void reduce_rows(TensorView partial_TD, TensorView y_RD, device::StreamRef stream) override;
  void attention(const kernels::AttentionShape& shape, kernels::ConstHeads q, kernels::ConstHeads k,
                 kernels::ConstHeads v, kernels::Heads out, float* lse_BNT,
                 device::StreamRef stream) override;
  void attention_backward(const kernels::AttentionShape& shape, kernels::ConstHeads q,
                          kernels::ConstHeads k, kernels::ConstHeads v, kernels::ConstHeads out,
                          kernels::ConstHeads dout, const float* lse_BNT, float* delta_BNT,
                          kernels::Heads dq, kernels::Heads dk, kernels::Heads dv,
                          device::StreamRef stream) override;
  void cross_entropy(model::VocabularyPart part, TensorView logits_TV, ConstTensorView target_T,
                     TensorView loss_T, std::optional<float> gradient_scale,
                     device::StreamRef stream) override;

  /// Starts sums when `state` is complete; nothing otherwise. Collective then. Units may become
  /// ready in another order than StageLayout::finishing_units; they are summed in that order.
  void gradients_ready(int unit, model::Gradients state, device::StreamRef stream) override;

  /// Orders `stream` behind all sums of this step: after it the gradients are those of the global
  /// batch, the same bits on every rank that holds them. Collective over the ranks that share a
  /// tied embedding.
  void wait_all(device::StreamRef stream);

 private:
  TensorParallel tensor_;
  std::unique_ptr<ContextParallel> context_;  ///< none with one rank on the cp axis
  ReplicaSums replicas_;
  bool reduces_;
  std::vector<int> finishing_units_;
  std::vector<int> ready_units_;  ///< that wait for one before them in that order
  std::size_t finished_ = 0;
  TensorView tied_gradient_;                 ///< of a second copy, or that has one
  std::unique_ptr<comm::Communicator> tie_;  ///< the two ranks that hold the copies
  GradientBuckets buckets_;
};

}  // namespace fourfold::parallel
