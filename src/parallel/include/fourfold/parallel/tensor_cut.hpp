// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How tensor parallelism cuts a model, by ParameterSpec::cut. Everybody who must know which rank
/// holds what asks here: parameters, checkpoints, gradient sums, the clip norm. A pure function of
/// (parameter, degree).
///
/// Cut along their output features (dim 0): q, k and v by whole heads, gate and up by feature;
/// along their input features (dim 1): o_proj and down_proj; along the vocabulary (dim 0):
/// embedding.token and lm_head. Norms, the position embedding and the biases of o_proj and
/// down_proj are whole on every rank. With fewer key/value heads than ranks, neighbours share one.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model/parameter_table.hpp>

#include <vector>

namespace fourfold::parallel {

/// One part of a parameter and the positions on the tp axis that each hold it.
struct TensorShard {
  Box box;
  Range holders;  ///< consecutive positions; all of them for what is not cut
};

/// The distinct parts in the order of positions. @pre validate_tensor_cut(config, tp) passes
std::vector<TensorShard> tensor_shards(const model::ParameterSpec& spec, int tp);

/// The part that position `rank` holds. @pre as tensor_shards; 0 <= rank < tp
TensorShard tensor_shard(const model::ParameterSpec& spec, int tp, int rank);

/// Whether the ranks that hold the same part each have only an addend of its gradient, by
/// ParameterSpec::partial: a shared key/value head sees the query heads of its own rank alone, and
/// under sequence parallelism a norm sees its rank's rows.
bool gradient_is_partial(const model::ParameterSpec& spec, const TensorShard& shard,
                         bool sequence_parallel);

/// Whether every position holds as much of each matrix of a block as the others do: heads always
/// are dealt evenly, ffn features need not be.
bool blocks_are_cut_alike(const model::Architecture& config, int tp);

/// The boxes of a whole table at one position.
std::vector<Box> tensor_boxes(const std::vector<model::ParameterSpec>& table, int tp, int rank);

/// @throws UserError (config) when the model cannot be cut into tp parts: names the key of the
///   model, and the degrees that work
void validate_tensor_cut(const model::Architecture& config, int tp);

}  // namespace fourfold::parallel
