// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A matrix whose rows are gathered, used and reduced in tiles, so that it need not be in memory
/// whole. Legend: O rows of a tile (output features), I features of a row.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/parallel_hooks.hpp>
#include <fourfold/model/parameters.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::model {

struct Tile {
  Part part;
  Range rows;  ///< of the matrix
  TensorView weight_OI;
  TensorView gradient_OI;
};

/// The tiles of a matrix in order of rows; none where units are not in tiles.
/// @param flat      its elements
/// @param features  I
std::vector<Tile> tiles_of(const Parameters& parameters, Range flat, std::int64_t features);

/// Which tile is the first of a pass. The backward pass goes through a unit the other way round
/// than the forward pass, so that in both of them one tile and the next have different buffers.
enum class Order : std::uint8_t { forward, backward };

/// Calls use(tile) for each tile while its weights are in place, and those of the next on their
/// way.
template <class Use>
void for_each_tile(std::span<const Tile> tiles, Order order, ParallelHooks& hooks,
                   device::StreamRef stream, const Use& use) {
  const std::size_t count = tiles.size();
  const auto nth = [&](std::size_t i) -> const Tile& {
    return tiles[order == Order::forward ? i : count - 1 - i];
  };
  for (std::size_t i = 0; i < count; ++i) {
    const Tile& tile = nth(i);
    hooks.weights_needed(tile.part, stream);
    if (i + 1 < count) {
      hooks.weights_ahead(nth(i + 1).part);
    }
    use(tile);
    hooks.weights_done(tile.part, stream);
  }
}

/// Calls add(tile) for each tile, from the last, to add to its gradient.
template <class Add>
void for_each_tile_gradient(std::span<const Tile> tiles, ParallelHooks& hooks,
                            device::StreamRef stream, const Add& add) {
  for (std::size_t i = tiles.size(); i-- > 0;) {
    hooks.gradients_needed(tiles[i].part, stream);
    add(tiles[i]);
    hooks.gradients_ready(tiles[i].part, Gradients::partial, stream);
  }
}

}  // namespace fourfold::model
