// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/model/architecture.hpp>
#include <fourfold/schedule/schedule_generators.hpp>
#include <fourfold/schedule/split_layers.hpp>

namespace fourfold::schedule {

/// The one stage of a run without a pipeline.
inline StageLayout whole_model(const model::Architecture& config, int micro_batches = 1) {
  return {make_schedule({.micro_batches = micro_batches}),
          {model::all_units(config)},
          config.tie_embeddings};
}

}  // namespace fourfold::schedule
