// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/batch/attempt_log.hpp>
#include <fourfold/telemetry/start_history.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fourfold::batch {

/// One start of a run with all that is known of it: by a batch job (attempts.jsonl), by the trainer
/// (metrics.jsonl), mostly by both. A trainer started without a batch job of ours is one too.
struct RunAttempt {
  BatchJob start = {};  ///< no id: none
  int nodes = 1;
  int held_nodes = 0;  ///< as Attempt has them, and the next two
  int idle_nodes = 0;
  std::vector<int> idle_with_nodes = {};
  double began_unix_s = 0;
  double until_unix_s = 0;  ///< its end where that was noted, else its last sign of life
  /// As Attempt has them: they say what it cost, not what it was.
  std::optional<double> job_began_unix_s = {};
  std::optional<JobRelease> released = {};
  bool trained = false;  ///< the trainer came as far as its first step, or the checkpoint before
  std::int64_t from_step = 0;  ///< completed steps at its begin
  std::int64_t to_step = 0;    ///< and at its end
  /// Checkpoints, in the order in which they were complete.
  std::vector<telemetry::StepTime> saved = {};
  double last_step_unix_s = 0;  ///< when to_step was complete
  bool ended = false;           ///< somebody noted its end; otherwise it goes on or was cut off
  ExitCode code = ExitCode::finished;  ///< of its end, as the next two
  std::string reason = {};
  bool retry = false;
  std::string next = {};  ///< as AttemptEnd has them, or as Attempt where it has not ended
  std::string no_next = {};
  bool refused = false;  ///< before it changed anything of the run
};

/// In the order in which they began. A trainer belongs to the newest job that had begun before it
/// and not ended, unless that has one already. What both tell, the trainer knows better, but for
/// the end: that of the job is noted even where the trainer was killed. Jobs at times that cannot
/// be are left out.
std::vector<RunAttempt> attempts_of_run(std::span<const Attempt> jobs,
                                        std::span<const telemetry::TrainerStart> trainers);

/// The newest that was not refused, of which the run's state is; null: none.
const RunAttempt* newest_of_run(std::span<const RunAttempt> attempts);

}  // namespace fourfold::batch
