// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/runfile/run_config.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fourfold::job {

/// How a run is to be started on what the job has.
struct ChosenStart {
  /// "start", the number of tasks if it is not all of them ("all"), and what `fourfold train` gets
  /// besides, a line each.
  std::string lines = {};
  int idle_nodes = 0;  ///< of the job, on which the run has no rank
  std::vector<int> idle_with_nodes =
      {};  ///< which numbers of FOURFOLD_NODES ("2-4") leave some idle
};

/// By Slurm's variables; all tasks outside of its jobs. Tells the mesh where it is not simply all
/// of them.
/// @return nothing for a restart inside a job on whose last nodes no mesh fits: another job may
/// have
///   more
/// @throws UserError (config) when no mesh fits
std::optional<ChosenStart> chosen_start(const runfile::EffectiveConfig& effective);

}  // namespace fourfold::job
