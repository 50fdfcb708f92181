// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The two kinds of layers that own parameters inside a unit. Legend: N rows, I input features, O
/// output features, R rows of the residual stream, D hidden.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model/parallel_hooks.hpp>
#include <fourfold/model/parameters.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace fourfold::model {

// A matrix whose rows are gathered, used and reduced in tiles, so that it need not be in memory
// whole. Legend: O rows of a tile (output features), I features of a row.

struct Tile {
  WeightGroup part;
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
    hooks.acquire_weights(tile.part, stream);
    if (i + 1 < count) {
      hooks.prefetch_weights(nth(i + 1).part);
    }
    use(tile);
    hooks.release_weights(tile.part, stream);
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

/// y = x w^T + b, where w is one parameter or several that lie one after the other and are read as
/// one matrix (q, k and v; gate and up). In tiles, each pass asks the hooks for one after the
/// other; else the weights are in place for the whole pass, and whoever calls has asked for them.
class Linear {
 public:
  /// @param prefixes  "layers.0.attn.q_proj", ...: names without ".weight", in memory order
  /// @param hooks     borrowed
  Linear(const Parameters& parameters, std::initializer_list<std::string> prefixes,
         ParallelHooks& hooks);

  std::int64_t out_features() const noexcept { return out_features_; }
  int unit() const noexcept { return weight_->spec.unit; }

  /// @param with_bias  false leaves the bias out (another rank adds it)
  void forward(ConstTensorView x_NI, TensorView y_NO, bool with_bias,
               device::StreamRef stream) const;
  /// pre = x w^T + b; y = gelu(pre), at once where the device can.
  void forward_gelu(ConstTensorView x_NI, TensorView pre_NO, TensorView y_NO,
                    device::StreamRef stream) const;
  /// forward() of no rows: gathers tiles, and lets go of them, as other ranks do that have rows.
  void forward_nothing(device::StreamRef stream) const;
  /// dx = dy w
  /// @param sums  f32, at least as many as dx has, for tiles: they add up in f32 whatever dx is
  void backward_input(ConstTensorView dy_NO, TensorView dx_NI, TensorView sums,
                      device::StreamRef stream) const;
  /// dpre = (dy w) * gelu'(pre), where gelu(pre) is what forward() had as x; at once where the
  /// device can. @param sums  as backward_input()
  void backward_input_gelu(ConstTensorView dy_NO, ConstTensorView pre_NI, TensorView dpre_NI,
                           TensorView sums, device::StreamRef stream) const;
  /// dw += dy^T x, db += column sums of dy
  void backward_weight(ConstTensorView x_NI, ConstTensorView dy_NO, device::StreamRef stream) const;

 private:
  ConstTensorView weight() const;
  /// Those of output features `rows`; absent without a bias.
  ConstTensorView bias(Range rows) const;
  TensorView bias_gradient(Range rows) const;

  /// Makes a product of kernels/matmul.hpp, which an observer is shown.
  template <class Make>
  void make(LinearMatmul product, device::StreamRef stream, const Make& product_of) const {
    product.layer = name_;
    make_observed(hooks_->matmul_observer(), product, stream, product_of);
  }

  const Parameter* weight_;          // the first of them
  const Parameter* bias_ = nullptr;  // likewise
  std::int64_t out_features_ = 0;
  std::vector<Tile> tiles_;
  ParallelHooks* hooks_;
  std::string name_;  ///< of all of them: "layers.0.attn.q_proj/k_proj/v_proj"
};

/// What a norm keeps for its backward pass: f32 per row. rms_norm has no mean.
struct NormStatistics {
  TensorView mean_R;
  TensorView rstd_R;
};

/// layer_norm or rms_norm.
class Norm {
 public:
  Norm(const NormTraits& traits, const Parameters& parameters, const std::string& prefix);

  void forward(ConstTensorView x_RD, TensorView y_RD, const NormStatistics& statistics,
               device::StreamRef stream) const;
  /// sum = x + residual; y = forward of that. sum may be x or residual.
  void forward_of_sum(ConstTensorView x_RD, ConstTensorView residual_RD, TensorView sum_RD,
                      TensorView y_RD, const NormStatistics& statistics,
                      device::StreamRef stream) const;
  /// dx += gradient; weight gradients are added to.
  void backward(ConstTensorView dy_RD, ConstTensorView x_RD, const NormStatistics& statistics,
                TensorView dx_RD, device::StreamRef stream) const;

 private:
  const Parameter* weight_;
  const Parameter* bias_;  // nullptr for rms_norm
  float epsilon_;
};

}  // namespace fourfold::model
