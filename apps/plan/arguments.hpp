// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/plan/simulate.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/schedule_generators.hpp>
#include <fourfold/schedule/timeline.hpp>
#include <fourfold/train/resolved_run.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::plan_program {

/// Either a schedule by itself, or a run file with all that is in it.
struct Arguments {
  std::string run_file;
  std::vector<std::string> overrides;
  std::int64_t ranks = 0;  ///< 0: as many as the run file's degrees make
  std::optional<std::int64_t> rank;
  std::optional<int> gpu;  ///< compute capability: 90 for 9.0
  schedule::ScheduleRequest schedule{.name = "", .stages = 0, .micro_batches = 0};
  std::vector<double> costs = {1, 1, 1};
  double link_s = 0;
  std::string trace;
  std::string svg;
  std::string csv;

  /// The schedule is a file rather than a name.
  bool from_file() const { return schedule.name.ends_with(".csv"); }
  plan::PassCosts pass_costs() const { return {costs[0], costs[1], costs[2]}; }
};

/// The options and the manual page.
void describe(CLI::App& command, Arguments& arguments);

/// @throws UserError (usage) for options that do not go together
void validate(const Arguments& arguments);

/// What `fourfold plan` prints.
std::string report(const Arguments& arguments, const schedule::Schedule& schedule,
                   const schedule::Timeline& timeline);

/// Micro-batches whose activations a rank holds at most.
double peak_of(const schedule::Schedule& schedule, int rank);

/// Title and line below it of the picture.
std::string title(const schedule::Schedule& schedule);
std::string subtitle(const Arguments& arguments, const schedule::Schedule& schedule,
                     const schedule::Timeline& timeline);

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
