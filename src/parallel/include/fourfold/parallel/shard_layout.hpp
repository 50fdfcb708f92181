// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How ZeRO shares parameters out among the ranks of the data plane that hold the same ones. Every
/// segment of the flat memory is cut at borders of rows (dim 0) of the tensors in it, so that a
/// rank's share of a tensor is a box and a checkpoint needs no exchange. A pure function.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/model/flat_memory.hpp>
#include <fourfold/model/parameter_table.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::parallel {

/// What the ranks of a data plane (dp x cp, which hold the same parameters) share out: ZeRO.
struct ZeroOptions {
  /// Ranks among which each parameter is shared out; it divides the size of the data plane, whose
  /// groups of so many neighbours are replicas of each other. 1: every rank has all of it
  int shard_ranks = 1;
  /// Gradients of matrices are reduced after every micro-batch, so that none but the share's stay
  bool reduce_each_micro_batch = false;
  /// Weights of matrices are gathered when they are needed, and none but the share's stay
  bool gather_each_unit = false;
  /// Of each matrix, that are gathered and reduced by themselves; above 1 only with
  /// gather_each_unit
  int tiles = 1;
  /// Masters, and the optimizer's state, are not in device memory
  bool offloads_state = false;
  std::int64_t bucket_bytes = 25'000'000;  ///< of a gradient collective, about; at least 4
  /// Neighbours of the data plane that sum their gradients; shard_ranks divides it. 0: all of it
  int sum_ranks = 0;
};

/// Part of one parameter, such as that inside one rank's share: whole rows.
struct ShardPiece {
  std::size_t parameter = 0;  ///< table index
  Box box;                    ///< in the logical tensor
  Range flat;
};

class ShardLayout {
 public:
  /// @param table, boxes  what each of the ranks would hold without ZeRO
  /// @param layout        flat_layout(table, boxes)
  /// @param ranks         that share it, at least 1
  ShardLayout(std::span<const model::ParameterSpec> table, std::span<const Box> boxes,
              const model::FlatLayout& layout, int ranks);

  int ranks() const noexcept { return ranks_; }
  /// What `rank` has of a segment (index into FlatLayout::segments): shares follow one another in
  /// the order of ranks and cover the segment; they differ by about a row, and may be empty.
  Range share(std::size_t segment, int rank) const;
  /// Elements that each rank has of `part` of a segment, in the order of ranks.
  std::vector<std::int64_t> counts(std::size_t segment, Range part) const;
  /// What `rank` has of each parameter, in flat order; nothing of it is left out but gaps.
  std::vector<ShardPiece> pieces(int rank) const;

 private:
  std::vector<std::int64_t> cut(Range segment) const;

  int ranks_;
  std::vector<ShardPiece> placed_;               ///< whole, in flat order; none is empty
  std::vector<std::vector<std::int64_t>> cuts_;  ///< [segment][0 ... ranks]
};

}  // namespace fourfold::parallel
