// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/parallel/parameter_shard.hpp>
#include <fourfold/parallel/whole_matrices.hpp>
#include <fourfold/train/optimizer.hpp>
#include <fourfold/train/state_tier.hpp>
#include <fourfold/train/update_rule.hpp>

#include <cstddef>
#include <functional>
#include <vector>

namespace fourfold::train {

/// Updates the parameters of a rank whose groups have rules that want them whole. What the rank has
/// of a matrix is handed to the rule as it lies, where it is one piece in device memory; else a
/// copy of it, which goes back.
class MatrixUpdate {
 public:
  /// Everything is borrowed.
  /// @param states  of which states_of() is called now
  /// @throws UserError (config) naming a parameter of these groups that is no matrix
  MatrixUpdate(const UpdateRules& rules, const Optimizer& states,
               const parallel::ParameterShard& share,
               const parallel::WholeMatrices::State& matrices, StateTier& tier);

  /// Whether a segment is of such a group.
  bool has(std::size_t segment) const;
  /// The gradients of one more segment are there. With the last segment of a unit its matrices are
  /// updated, masters and states. Collective over the ranks that hold the unit.
  /// @return all segments of that unit; none before its last
  std::vector<std::size_t> update(std::size_t segment, const UpdateStep& step,
                                  device::StreamRef stream);
  /// Blocks the host until all is where its views show it.
  void synchronize();

 private:
  /// A piece of the share: its master, gradient and states.
  struct Piece {
    const parallel::ParameterShard::Piece* piece;
    std::vector<TensorView> values;
  };
  const MatrixRule* rule_of(std::size_t matrix) const {
    return matrix_rule_of(rules_, matrices_.parameters().all()[matrix].spec.group);
  }
  void take_memory(device::Arena& arena);
  bool is_staged(std::size_t matrix) const;
  void update_matrix(std::size_t matrix, const UpdateStep& step, device::StreamRef stream);
  /// As it lies, or in memory for copies.
  MatrixShard shard_of(std::size_t matrix) const;
  /// Calls body(view of the shard, view of the share) for masters, states, and gradients if wanted.
  void for_each_copy(const MatrixShard& shard, bool gradients,
                     const std::function<void(TensorView, TensorView)>& body) const;

  UpdateRules rules_;
  parallel::WholeMatrices matrices_;
  StateTier* tier_;
  std::vector<std::vector<Piece>> pieces_;  ///< by place in Parameters::all()
  std::vector<TensorView> copies_;          ///< of master, gradient and states; or none
  TensorView scratch_;
  std::vector<std::size_t> pending_;  ///< segments of a unit
  device::Event updated_;
  device::Stream waiting_;
};

}  // namespace fourfold::train
