// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/parallel/parameter_shard.hpp>
#include <fourfold/parallel/tensor_parallel.hpp>
#include <fourfold/train/optimizer.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/state_tier.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

namespace fourfold::train {

/// Where replicas meet that train by themselves (local SGD: Stich 2019; with Nesterov momentum
/// DiLoCo: Douillard et al. 2023). A replica is what one position of the dp axis holds: its shares
/// lie on the other axes as those of the others do. With w the mean of their weights, f32, and a
/// the weights that all of them began the round with:
///   average:   a = w
///   nesterov:  d = a - w;  v = outer_momentum * v + d;  a -= outer_lr * (d + outer_momentum * v)
/// and all go on with a. The optimizer's moments stay each replica's own.
///
/// All of it happens where masters and moments lie (offload.optimizer). They are sent from there
/// where ranks have host memory only, else through a piece of the device's: no transport of devices
/// reaches into a file, and none should cross to the host's memory for each step of a ring. State
/// in a file is taken through memory a few pieces at a time, which blocks the host.
class OuterOptimizer {
 public:
  /// Takes what it keeps from `tier`, where the share's masters are, and from `device` what they
  /// are sent through. Everything else is borrowed.
  /// @param run  whose replicas train by themselves: else it keeps nothing and does nothing
  OuterOptimizer(const ResolvedRun& run, const parallel::ParameterShard& share,
                 comm::Communicator& dp, StateTier& tier, device::Arena& device);

  bool in_use() const noexcept { return run_->trains_locally; }
  /// Whether replicas meet after this many completed steps.
  bool ends_round(std::int64_t completed_steps) const noexcept {
    return in_use() && completed_steps % run_->config.mesh.average_every == 0;
  }

  /// The masters of the share, the same on all replicas, are where a round begins.
  /// @pre the optimizer is synchronized, as for meet() and average()
  void begin(device::StreamRef stream) const;
  /// The masters of the share become what all replicas go on with, the same bits on each. The
  /// weights are left to the caller.
  /// Collective over dp, ordered on `stream`.
  void meet(device::StreamRef stream);
  /// A step has been made, after which replicas differ until they meet.
  void part() noexcept { are_apart_ = true; }
  bool are_apart() const noexcept { return are_apart_; }
  /// The optimizer's moments become their mean over the replicas, the same bits on each: a
  /// checkpoint has one of each. Collective over dp.
  void average(const Optimizer& inner, device::StreamRef stream) const;

  /// "outer_momentum" or nothing; as Optimizer::moments().
  std::span<const Moment> moments() const noexcept { return moments_; }
  /// What moves at a meeting, and when moments are averaged.
  void add_moved_memory(parallel::MovedMemories& moved) const;
  /// Bytes that this rank hands to others at a meeting.
  std::int64_t sent_bytes() const;

 private:
  /// Calls body for parts of so many elements that are small enough to be in memory at once.
  void for_each_part(std::int64_t elements, const std::function<void(Range)>& body) const;
  /// After what is done with views: takes them out of memory, if they are windows on a file.
  void let_go(std::initializer_list<TensorView> views, device::StreamRef stream) const;
  /// part = its mean over the replicas.
  void average_over_replicas(TensorView part, device::StreamRef stream) const;
  void step(TensorView outer, TensorView velocity, TensorView master,
            device::StreamRef stream) const;

  const ResolvedRun* run_;
  const parallel::ParameterShard* share_;
  comm::Communicator* dp_;
  StateTier* tier_;
  std::int64_t most_;    ///< elements of what lies elsewhere that are in memory at once
  TensorView exchange_;  ///< device memory for as many, where the state lies elsewhere
  TensorView outer_;     ///< a: one number per element of the share; with nesterov
  std::vector<Moment> moments_;
  bool are_apart_ = false;
};

}  // namespace fourfold::train
