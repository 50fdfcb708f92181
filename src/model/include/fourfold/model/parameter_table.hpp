// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The parameters of a model as data: logical tensors (global, per layer, unfused, without
/// vocabulary padding). Whoever shards, saves, exports or counts parameters starts from this table.
///
/// Names (N is the layer, from 0):
///   embedding.token.weight        [vocab, hidden]
///   embedding.position.weight     [context, hidden]        learned positions
///   layers.N.attn_norm.weight     [hidden]                 .bias: layer_norm
///   layers.N.attn.q_proj.weight   [heads * head_dim, hidden]     .bias: has_qkv_bias()
///   layers.N.attn.{k,v}_proj.weight  [kv_heads * head_dim, hidden]  likewise
///   layers.N.attn.{q,k}_norm.weight  [head_dim]            qk_norm
///   layers.N.attn.o_proj.weight   [hidden, heads * head_dim]     .bias: biases
///   layers.N.mlp_norm.weight      [hidden]                 .bias: layer_norm
///   layers.N.mlp.gate_proj.weight [ffn, hidden]            gated
///   layers.N.mlp.up_proj.weight   [ffn, hidden]            .bias: biases
///   layers.N.mlp.down_proj.weight [hidden, ffn]            .bias: biases
///   final_norm.weight             [hidden]                 .bias: layer_norm
///   lm_head.weight                [vocab, hidden]          absent when tied
/// Weights of linear layers are [out, in]: y = x w^T + b.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/shape.hpp>
#include <fourfold/model/architecture.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fourfold::model {

inline constexpr const char* token_embedding_name = "embedding.token.weight";

/// How a parameter starts.
enum class Init : std::uint8_t { normal, ones, zeros };

/// vector: norms and biases, [features]. matrix: read by a matmul. embedding: rows that are looked
/// up. The last two are [rows, columns].
enum class ParameterKind : std::uint8_t { vector, matrix, embedding };

/// How tensor parallelism deals a parameter out: whole units along one dim. Units of one kind
/// are dealt alike in all parameters.
struct TensorCut {
  enum class Unit : std::uint8_t { query_head, kv_head, ffn_feature, vocabulary_row };
  Unit unit = Unit::query_head;
  std::size_t dim = 0;
  std::int64_t units = 1;  ///< in the whole parameter; divides shape[dim]
  friend bool operator==(const TensorCut&, const TensorCut&) = default;
};

/// When ranks of the tensor axis that hold the same part of a parameter each have only an addend of
/// its gradient. Else all of them have the same gradient.
enum class PartialGradient : std::uint8_t {
  never,
  over_heads,  ///< each sees the attention heads of its own rank alone
  over_rows,   ///< under sequence parallelism each sees the rows of its own rank alone
};

/// Which rule of the optimizer updates a parameter: a run has one for each group.
enum class OptimizerGroup : std::uint8_t {
  hidden_matrices,  ///< matrices of blocks, between activations and activations
  others,           ///< embeddings, the head, vectors
  frozen,           ///< whatever its kind, what is not trained
};
inline constexpr std::size_t optimizer_group_count = 3;

/// All that others must know of a parameter. Nothing is decided by the spelling of its name.
struct ParameterSpec {
  std::string name;
  Shape shape;  ///< logical
  ParameterKind kind = ParameterKind::matrix;
  Init init = Init::normal;
  float init_std = 0;  ///< of Init::normal: 0.02; o_proj and down_proj 0.02 / sqrt(2 * layers)
  bool decay = false;  ///< weight decay applies: here to all but vectors
  OptimizerGroup group = OptimizerGroup::others;
  int unit = 0;  ///< see UnitRange
  /// stored right after the parameter before it, of vectors the vector before it, so that both are
  /// read as one matrix: k and v after q, up after gate
  bool fused_with_previous = false;
  std::optional<TensorCut> cut = std::nullopt;  ///< nothing: whole on every rank
  PartialGradient partial = PartialGradient::never;

  /// Else it keeps its bits: no update, no decay, no states, and no part in the gradient norm.
  bool is_trainable() const noexcept { return group != OptimizerGroup::frozen; }
  bool is_vector() const noexcept { return kind == ParameterKind::vector; }
  /// Rows of the vocabulary that are looked up: what a tied head reads, too.
  bool is_token_embedding() const noexcept {
    return kind == ParameterKind::embedding && cut && cut->unit == TensorCut::Unit::vocabulary_row;
  }
  friend bool operator==(const ParameterSpec&, const ParameterSpec&) = default;
};

/// A half-open range of units. A unit is what pipelines place and what ZeRO gathers: unit 0 is the
/// embeddings, unit 1 + i is block i, unit layers + 1 is the final norm with the language-model
/// head.
struct UnitRange {
  int begin = 0;
  int end = 0;
  bool contains(int unit) const noexcept { return begin <= unit && unit < end; }
  friend bool operator==(const UnitRange&, const UnitRange&) = default;
};

/// Matrices that are gathered, used and reduced at once: all of a unit, or one tile of them where
/// the flat memory has tiles (FlatLayout).
struct WeightGroup {
  static constexpr int whole = -1;
  int unit;
  int tile;  ///< counted within the unit, or `whole`
  // NOLINTNEXTLINE(google-explicit-constructor): a unit is a part
  constexpr WeightGroup(int unit_in, int tile_in = whole) noexcept : unit(unit_in), tile(tile_in) {}
  friend bool operator==(const WeightGroup&, const WeightGroup&) = default;
};

/// Of each parameter the whole tensor: what one rank holds without tensor parallelism.
std::vector<Box> whole_boxes(std::span<const ParameterSpec> table);

/// All units of a model: [0, layers + 2).
UnitRange all_units(const Architecture& config);

/// All parameters in the order of units. @pre config is resolved
std::vector<ParameterSpec> parameter_table(const Architecture& config);

/// @throws UserError (exit code config) where config.frozen names what is no parameter, all
///   parameters, or a part of what one matmul reads
void validate_frozen(const Architecture& config);

/// The parameters that a rank with these ranges of units needs, in the order of units. With tied
/// embeddings a rank that has the head but not unit 0 gets embedding.token.weight as well, as a
/// parameter of the head's unit: a second copy, whose gradient must be added to the first's.
/// @pre the ranges ascend and do not overlap
std::vector<ParameterSpec> parameter_table(const Architecture& config,
                                           std::span<const UnitRange> held);
std::vector<ParameterSpec> parameter_table(const Architecture& config, UnitRange units);

}  // namespace fourfold::model
