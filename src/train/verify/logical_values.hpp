// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mesh_walk.hpp"

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/parallel/parameter_shard.hpp>

#include <mutex>
#include <string>
#include <vector>

namespace fourfold::train {

/// Puts whole parameters together from what ranks hold, and compares what several hold. Ranks may
/// add at the same time, in any order.
class LogicalValues {
 public:
  /// @param what  "gradient", "weight": for the words about disagreements
  LogicalValues(const std::vector<model::ParameterSpec>& table, std::string what);

  /// Adds what one rank's share has. Blocks the host until `stream` has produced it.
  /// @param part  ParameterShard::Piece::master or ::gradient
  void add(const parallel::ParameterShard& share, TensorView parallel::ParameterShard::Piece::*part,
           int rank, device::StreamRef stream);

  /// Gives the tensors away. Elements that nobody added stay nan and are told of.
  ParameterValues take(std::vector<std::string>& disagreements);

 private:
  void add_box(std::size_t tensor, const Box& box, const std::vector<float>& values, int rank);

  const std::vector<model::ParameterSpec>* table_;
  std::string what_;
  std::mutex mutex_;
  ParameterValues values_;
  std::vector<std::vector<int>> first_holder_;  ///< per element; -1: nobody yet
  std::vector<std::string> disagreements_;
};

/// The way back: writes the share's part of whole parameters into its masters. Blocks the host.
/// @param values  per parameter of `table`, which has all parameters of the share
void put_masters(const ParameterValues& values, const std::vector<model::ParameterSpec>& table,
                 const parallel::ParameterShard& share, device::StreamRef stream);

}  // namespace fourfold::train
