// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/mesh.hpp>
#include <fourfold/comm/work.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/parallel/parameter_share.hpp>
#include <fourfold/parallel/zero.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <span>
#include <vector>

namespace fourfold::train {

/// The global L2 norm of all gradients, and what an update multiplies them by because of it. Each
/// logical element is counted once over the mesh, in an order that ZeRO does not change.
///
/// Replicas that train by themselves have a norm each, and tell the mean of them.
class GradientNorm {
 public:
  /// All but the config is borrowed; takes a few numbers of workspace.
  GradientNorm(const runfile::RunConfig& config, const model::Parameters& parameters,
               const parallel::ParameterShare& share, comm::Mesh& mesh,
               const parallel::ZeroOptions& zero, device::Arena& arena);

  /// Enqueued on `stream`; collective over the mesh: this stage's part, and its sum over the
  /// stages, which is on its way afterwards, beside
  /// what is enqueued on `stream`. @pre all gradients are reduced
  /// @param shard_group  TrainingSeams::shard_group()
  /// @param stages  the ranks of the pp axis
  void begin(comm::Communicator& shard_group, comm::Communicator& stages, device::StreamRef stream);
  /// Behind begin(). Afterwards scale() holds min(1, optim.clip_norm / norm) / loss_scale, or NaN
  /// on all ranks where the norm is not finite on any (kernels::clip_scale).
  void finish(double loss_scale, device::StreamRef stream);

  /// On the device: what gradients are to be multiplied by.
  const float* scale() const noexcept { return scale_.as<float>(); }
  /// On the device: 1 / loss_scale, as scale() is where nothing is clipped.
  const float* unclipped_scale(double loss_scale, device::StreamRef stream);

  /// Of the gradients of the loss itself, before clipping, and whether scale() is other than
  /// 1 / loss_scale: what finish() has found.
  struct Found {
    float norm = 0;
    bool clips = false;  ///< or there is nothing to multiply by
  };
  /// Blocks the host. @pre finish(), with the same loss_scale
  Found found(double loss_scale, device::StreamRef stream);

  /// Of other numbers (f32, bf16 or f16), by the same kernel. Blocks the host. @pre nothing is
  /// between begin() and finish()
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
  TensorView nothing_;  ///< f64 scalar: what is clipped from
  TensorView unclipped_norm_;
  TensorView unclipped_scale_;
  device::Stream communication_;  ///< so that nothing after begin() waits for other stages
  device::Event produced_;
  comm::Work reduction_;
};

}  // namespace fourfold::train
