// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Activation checkpointing: which activations a stage keeps between the forward and the backward
/// pass of a block. What it does not keep lies in memory that all blocks and slots share, and is
/// made again, to the same bits, just before the block's backward pass. docs/activations.md has the
/// bytes.
#pragma once

#include <fourfold/base/enum_name.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fourfold::model {

/// Kinds of a block's activations besides its input, true for those that each slot keeps.
struct KeptActivations {
  bool products = false;        ///< query/key/value, and the residual stream after attention
  bool up_product = false;      ///< of the mlp's first product; swiglu's gradient takes its place
  bool product_inputs = false;  ///< outputs of norms, attention and activation
  bool statistics = false;      ///< f32, of norms and of attention's softmax

  /// The kinds that are shared.
  constexpr KeptActivations others() const noexcept {
    return {!products, !up_product, !product_inputs, !statistics};
  }
  friend bool operator==(const KeptActivations&, const KeptActivations&) = default;
};

/// A policy. Blocks are counted from the first one of their stage.
struct Recompute {
  enum class Kind : std::uint8_t {
    none,      ///< everything is kept
    groups,    ///< only the input of each group of blocks, whose forward pass runs again
    selective  ///< all but norms, attention and activation, which run again: no product does
  };
  Kind kind = Kind::none;
  std::size_t group_blocks = 1;  ///< groups: blocks of one group; 1 otherwise

  static constexpr Recompute full() noexcept { return {Kind::groups, 1}; }

  std::size_t group_begin(std::size_t block) const noexcept {
    return block / group_blocks * group_blocks;
  }
  /// Whether the backward pass of `block`, the first one of its group to have it, is where the
  /// group's forward pass runs again.
  bool runs_group_again(std::size_t block, std::size_t blocks) const noexcept {
    return kind == Kind::groups && (block + 1 == blocks || group_begin(block + 1) == block + 1);
  }

  /// @param delayed_weights  weight gradients are added later (StageOptions::Backward::split): each
  ///   slot keeps what products read, from its backward_input to its backward_weight, and swiglu's
  ///   gradient
  /// @param up_is_gradient  backward puts the gradient of the mlp's first product in its place
  KeptActivations kept(bool delayed_weights, bool up_is_gradient) const noexcept;

  friend bool operator==(const Recompute&, const Recompute&) = default;
};

/// Those that need no number.
inline constexpr auto named_recomputes = std::to_array<Named<Recompute>>(
    {{{}, "none"}, {Recompute::full(), "full"}, {{Recompute::Kind::selective}, "selective"}});
/// Of these, else "every:K".
std::string name(const Recompute& recompute);
/// The policy called so, "every:1" being "full"; absent when there is none.
std::optional<Recompute> recompute_named(std::string_view text);

}  // namespace fourfold::model
