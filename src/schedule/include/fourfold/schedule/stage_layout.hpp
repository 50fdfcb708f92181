// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/model/parameter_table.hpp>
#include <fourfold/schedule/schedule.hpp>

#include <vector>

namespace fourfold::schedule {

/// Which rank of the pp axis holds which units, and in which order it works on them. A pure value;
/// the same on all ranks.
struct StageLayout {
  Schedule schedule;
  std::vector<model::Units> stages;  ///< by virtual stage (split_layers)
  bool tied = false;                 ///< the head reads embedding.token.weight

  /// The ranges of a rank by chunk; they ascend.
  std::vector<model::Units> chunks_of(int rank) const;
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
