// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The starts of a run, as metrics.jsonl tells them: from where, how far, what was saved when. For
/// looking at a run from outside while it goes on: lines are taken as they come, and of the many
/// that tell of steps and evaluations only the last of each start is kept.
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/telemetry/metrics.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::telemetry {

/// When a step was complete, or on disk.
struct StepTime {
  std::int64_t step = 0;
  double unix_s = 0;
  friend bool operator==(const StepTime&, const StepTime&) = default;
};

struct StartEnd {
  double unix_s = 0;
  ExitCode code = ExitCode::finished;
  std::string reason = {};
};

/// One start of the trainer; its newest step is last_step.
struct TrainerStart : NewestStep {
  double began_unix_s = 0;
  std::int64_t from_step = 0;
  std::int64_t steps = 0;            ///< at which the run is finished; 0: not known
  int nodes = 1;                     ///< different hosts of its ranks
  std::string checkpoint = {};       ///< from which it went on
  StepTime last_step = {};           ///< its newest; from_step and began_unix_s before the first
  std::vector<StepTime> saved = {};  ///< checkpoints, in the order in which they were complete
  double last_word_unix_s = 0;
  double longest_silence_s = 0;  ///< between two of its records
  std::optional<double> validation_loss = {};
  std::optional<std::int64_t> validation_step = {};
  std::optional<StartEnd> end = {};  ///< nothing: it goes on, or was killed
};

class StartHistory {
 public:
  /// One line of metrics.jsonl, without its end. What is no record of ours is passed over.
  void add_line(std::string_view line);
  /// In the order in which they began.
  const std::vector<TrainerStart>& starts();

 private:
  void read_newest_lines();

  std::vector<TrainerStart> starts_;
  std::array<std::string, 2> newest_lines_;  ///< of a step and of an evaluation, not read yet
};

}  // namespace fourfold::telemetry
