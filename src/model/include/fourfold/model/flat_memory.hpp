// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How the parameters of a rank lie one after the other, and what memory there is behind them.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/model/parameter_table.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::model {

/// A run of flat elements that the optimizer treats alike and that ranks share out as one: one
/// unit's matrices and embeddings (that of the tokens by itself, so that both holders of a tied one
/// cut it alike), one tile of them, or the vectors (norms and biases) of all units together. Where
/// weight decay begins or ends, a segment does, too.
struct Segment {
  static constexpr int every_unit = -1;
  int unit = every_unit;  ///< of vectors: every_unit
  Range flat;
  bool decay = false;                             ///< of all its parameters
  OptimizerGroup group = OptimizerGroup::others;  ///< likewise
  int tile = WeightGroup::whole;
  bool has_vectors() const noexcept { return unit == every_unit; }
  WeightGroup part() const noexcept { return {unit, tile}; }
};

/// The numbers of elements: first the matrices, unit by unit in table order, then the vectors, unit
/// by unit in table order. Each parameter starts at a multiple of 16 elements unless it is
/// fused_with_previous. Gaps belong to nobody. A pure function of table, boxes and tiles.
///
/// In tiles, each matrix that a product reads (a parameter with those that follow it) is a number
/// of segments: tiles of whole rows, as even as can be, no more of them than rows. They are counted
/// through the unit.
struct FlatLayout {
  std::vector<Range> ranges;      ///< of each parameter, by table index
  std::vector<Segment> segments;  ///< cover [0, elements) in order; empty ones are left out
  std::int64_t elements = 0;

  /// All matrices of a unit, which are one run and may be none.
  Range matrices(int unit) const noexcept;
};
/// @param table  in the order of units
/// @param boxes  the part held here of each; one per spec
/// @param tiles  of each matrix; 1: units are not in tiles
FlatLayout flat_layout(std::span<const ParameterSpec> table, std::span<const Box> boxes,
                       int tiles = 1);

/// What there is memory for. Vectors are always whole: they are small.
enum class MatrixMemory : std::uint8_t {
  whole,  ///< every unit's
  /// blocks share two buffers, one after the other; the units at both ends share one. In tiles, the
  /// tiles of blocks share two, and those of both ends two others. Counted as communication
  double_buffered,
};

/// Memory for one kind of numbers (weights, gradients), addressed by flat elements.
class FlatMemory {
 public:
  /// Which buffer a part has in turn with others.
  static constexpr int buffers = 4;
  static constexpr int own_memory = -1;

  FlatMemory() = default;
  /// @param blocks  the units that are blocks; the others are the ends. Only for double_buffered
  FlatMemory(const FlatLayout& layout, MatrixMemory matrices, UnitRange blocks,
             device::MemoryUse use, DType dtype, device::Arena& arena);

  /// Whether `flat` lies in one part, or in the vectors; anything does if whole.
  bool holds(Range flat) const noexcept { return find(flat) != nullptr; }
  /// Rank 1. @pre holds(flat)
  TensorView at(Range flat) const;
  /// own_memory, or 0 ..< buffers.
  int buffer_of(WeightGroup part) const noexcept;

 private:
  struct Piece {
    Range flat;
    TensorView memory;
    WeightGroup part;
    int buffer;
  };
  const Piece* find(Range flat) const noexcept;
  void add(const Segment& segment, int buffer);

  std::vector<Piece> pieces_;
};

}  // namespace fourfold::model
