// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/model/architecture.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/schedule/schedule.hpp>

#include <cstdint>
#include <vector>

namespace fourfold::schedule {

/// FLOPs of one token through some units, as model::flops_per_token counts them: products, and
/// causal attention as half the square. Embeddings are look-ups and count nothing. The sum over all
/// units and passes is flops_per_token.
struct PassFlops {
  double forward = 0;
  double backward_input = 0;
  double backward_weight = 0;
  double sum() const noexcept { return forward + backward_input + backward_weight; }
};
/// @param tokens  of a sequence
PassFlops pass_flops(const model::Architecture& config, model::UnitRange units,
                     std::int64_t tokens);

struct LayerSplit {
  std::int64_t stages = 1;  ///< mesh.pp
  std::int64_t chunks = 1;  ///< mesh.chunks
  /// mesh.stage_layers: layers of each of the stages * chunks virtual stages; empty: by cost
  std::vector<std::int64_t> stage_layers;
  /// The fewest of both that the schedule can have: for messages, so that they name a value that
  /// works. 0: it can have no other number (a file says both).
  std::int64_t least_stages = 1;
  std::int64_t least_chunks = 1;
};

/// Cuts a model into stages * chunks ranges of units, along the forward pass: the embedding is with
/// the first, the head with the last. By cost: the dearest virtual stage is as cheap as it can be;
/// then all are as even as they can be; then the last has as few layers as it can (the head makes
/// up for them: none, if the vocabulary is large), and of the others the later ones have one more,
/// since the first ones hold more activations. A pure function; all ranks get the same.
/// @param config  resolved
/// @throws UserError (config): fewer layers than virtual stages, or stage_layers that do not fit,
///   with the nearest value that works
std::vector<model::UnitRange> split_layers(const model::Architecture& config,
                                           const LayerSplit& split);

/// Which rank of the pp axis holds which units, and in which order it works on them. A pure value;
/// the same on all ranks.
struct StageLayout {
  Schedule schedule;
  std::vector<model::UnitRange> stages;  ///< by virtual stage (split_layers)
  bool tied = false;                     ///< the head reads embedding.token.weight

  /// The ranges of a rank by chunk; they ascend.
  std::vector<model::UnitRange> chunks_of(int rank) const;
  int rank_of_unit(int unit) const;
  /// The ranks that hold a parameter: one, or with tied embeddings those of unit 0 and of the head.
  std::vector<int> holders(const model::ParameterSpec& spec) const;
  /// Of embedding.token.weight: one rank, or two if the head's rank has a tied copy; ascending.
  std::vector<int> token_embedding_holders() const;
  /// A rank's units in the order in which a step completes their gradients: chunks as the schedule
  /// ends them, each from its last unit down. A tied embedding that shares its rank with the head
  /// is complete when both are.
  std::vector<int> finishing_units(int rank) const;
};

}  // namespace fourfold::schedule
