// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/plan/simulate.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/schedule/schedule_generators.hpp>

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

}  // namespace fourfold::plan_program
