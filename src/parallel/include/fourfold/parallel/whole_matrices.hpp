// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/parallel/shard_layout.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace fourfold::parallel {

/// Brings the matrices of a rank together that ZeRO and tensor parallelism have cut, one at a time,
/// and cuts them again: for optimizers that look at whole matrices.
class WholeMatrices {
 public:
  /// What the matrices of a rank lie on; borrowed.
  struct State {
    const model::Parameters& parameters;  ///< of this rank
    const ShardLayout& shards;            ///< how `shard_group` shares them
    /// the ranks that hold the parts of what this rank would hold without ZeRO
    comm::Communicator& shard_group;
    comm::Communicator& tp;  ///< the ranks that tensor parallelism cuts for
    device::Arena& arena;
  };
  /// Takes twice the largest matrix (f32) from the arena.
  /// @param is_wanted  of which parameters, the same on all ranks that hold them. @pre matrices
  WholeMatrices(const State& state,
                const std::function<bool(const model::ParameterSpec&)>& is_wanted);

  /// Places in Parameters::all() of the wanted matrices of a unit, in table order: the same list on
  /// all ranks that hold the unit.
  std::vector<std::size_t> matrices_of(int unit) const;
  /// [rows, columns] of what this rank's share has of a matrix, whole rows of its tensor-parallel
  /// part in ascending order; there may be none.
  Shape mine(std::size_t matrix) const;

  /// The whole matrix [R, C]: a copy in memory of this object, until the next call; it may be
  /// written. Collective over the shard group and tp, for the same matrices in the same order.
  /// Ordered on `stream`.
  /// @param part  f32, of the shape mine(matrix)
  TensorView gather(std::size_t matrix, ConstTensorView part, device::StreamRef stream);
  /// part = what this rank has of `whole`. Ordered on `stream`; sends nothing.
  void cut(std::size_t matrix, ConstTensorView whole, TensorView part,
           device::StreamRef stream) const;

  const model::Parameters& parameters() const noexcept { return *parameters_; }
  /// The ranks that hold the parts.
  comm::Communicator& shard_group() noexcept { return *shard_group_; }
  comm::Communicator& tp() noexcept { return *tp_; }

 private:
  /// Of one matrix.
  struct Cut {
    Shape whole;
    Box box;                               ///< the tensor-parallel part of this rank
    std::vector<std::int64_t> counts;      ///< elements per rank of the shard group
    std::vector<std::vector<Range>> rows;  ///< of the box, per rank of the shard group, ascending
    std::vector<Box> boxes;                ///< the distinct tensor-parallel parts, ascending
    std::vector<std::int64_t>
        tp_counts;  ///< elements per rank of tp: of the first that holds a part
  };
  /// As Shape{rows, columns} of the memory that `taken` does not lie in.
  TensorView other_memory(const void* taken, Shape shape) const;
  TensorView gather_box(const Cut& cut, ConstTensorView part, device::StreamRef stream);
  TensorView gather_boxes(const Cut& cut, TensorView box, device::StreamRef stream);

  const model::Parameters* parameters_;
  comm::Communicator* shard_group_;
  comm::Communicator* tp_;
  std::vector<Cut> cuts_;  ///< by place in Parameters::all(); empty ones of what is not wanted
  std::array<TensorView, 2> memory_;
};

}  // namespace fourfold::parallel
