// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/mesh.hpp>
#include <fourfold/comm/work.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/parallel/parameter_shard.hpp>
#include <fourfold/train/resolved_run.hpp>

#include <span>
#include <vector>

namespace fourfold::train {

/// The global L2 norm of the gradients of all parameters that are trained, and what an update
/// multiplies them by because of it. Each logical element is counted once over the mesh, in an
/// order that ZeRO does not change.
///
/// Replicas that train by themselves have a norm each, and tell the mean of them.
class GradientNorm {
 public:
  /// All but the run is borrowed; takes a few numbers of workspace.
  GradientNorm(const ResolvedRun& run, const model::Parameters& parameters,
               const parallel::ParameterShard& share, comm::Mesh& mesh, device::Arena& arena);

  /// Enqueued on `stream`; collective over the mesh. Afterwards scale() holds
  /// min(1, optim.clip_norm / norm) / loss_scale, or NaN on all ranks where the norm is not finite
  /// on any (kernels::clip_scale). @pre all gradients are reduced
  /// @param shard_group  TrainingHooks::shard_group()
  void find(comm::Communicator& shard_group, double loss_scale, device::StreamRef stream);

  /// On the device: what gradients are to be multiplied by.
  const float* scale() const noexcept { return scale_.as<float>(); }

  /// Of the gradients of the loss itself, before clipping. Blocks the host. @pre find()
  float found(device::StreamRef stream);

  /// Of other numbers (f32, bf16 or f16), by the same kernel. Blocks the host. @pre
  /// nothing is between find() and found()
  double sum_of_squares(std::span<const TensorView> views, device::StreamRef stream) const;

 private:
  /// Takes the mean of the replicas' norms, and makes sure that all or none skip the step.
  void agree(device::StreamRef stream);

  float clip_norm_;
  bool has_loss_scale_;
  bool local_;
  comm::Mesh* mesh_;
  std::vector<TensorView> counted_;  ///< what this rank adds
  TensorView sum_of_squares_;        ///< f64 scalar
  TensorView norm_;                  ///< f32 scalars
  TensorView scale_;
  comm::Work reduction_;
};

}  // namespace fourfold::train
