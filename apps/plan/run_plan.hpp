// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"

#include <fourfold/train/resolved_run.hpp>

#include <cstdint>
#include <string>

namespace fourfold::plan_program {

/// A run, and what it would run on.
struct PlannedRun : train::ResolvedRun {
  int compute_capability = 0;  ///< of its GPUs, if it has any
};

/// Reads the run file and lays it out, with everything that training would refuse refused.
/// @throws UserError (config; usage when nobody says how many ranks there are)
PlannedRun plan_run(const Arguments& arguments);

/// The model, the mesh, and a line for each stage of the pipeline.
std::string run_report(const PlannedRun& run);

/// One rank: its lines, tokens, layers and tensors. @throws UserError (usage) when there is none
std::string rank_report(const PlannedRun& run, std::int64_t rank);

}  // namespace fourfold::plan_program
