// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/model/parallel_hooks.hpp>
#include <fourfold/parallel/collective_recorder.hpp>
#include <fourfold/parallel/context_parallel.hpp>
#include <fourfold/parallel/tensor_parallel.hpp>

#include <memory>

namespace fourfold::parallel {

/// Where activations meet on a mesh: rows and features on the tp axis, queries and keys on the cp
/// axis. Axes of degree 1 send nothing. Weights and gradients are this rank's alone.
class MeshHooks : public TensorParallel {
 public:
  /// Collective over the mesh, which is borrowed.
  MeshHooks(comm::Mesh& mesh, const TensorParallelOptions& tensor,
            const ContextParallelOptions& context, device::Arena& arena);

  void show_products_to(model::MatmulObserver* observer) override;
  void attention(const kernels::AttentionShape& shape, kernels::ConstHeads q, kernels::ConstHeads k,
                 kernels::ConstHeads v, kernels::Heads out, float* lse_BNT,
                 device::StreamRef stream) override;
  void attention_backward(const kernels::AttentionShape& shape, kernels::ConstHeads q,
                          kernels::ConstHeads k, kernels::ConstHeads v, kernels::ConstHeads out,
                          kernels::ConstHeads dout, const float* lse_BNT, float* delta_BNT,
                          kernels::Heads dq, kernels::Heads dk, kernels::Heads dv,
                          device::StreamRef stream) override;
  /// What the axes move of the arena.
  MovedMemories moved_memory() const;

  /// Notes what goes over the axes from here on. @param recorder  borrowed; or nullptr
  void record_into(CollectiveRecorder* recorder) noexcept;

 private:
  comm::Mesh* mesh_;
  RecordedCommunicator cp_;
  std::unique_ptr<ContextParallel> context_;  ///< none with one rank on the cp axis
};

}  // namespace fourfold::parallel
