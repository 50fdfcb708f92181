// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A run as it looks from outside, from the files in its directory alone.
#pragma once

#include <fourfold/batch/attempt_log.hpp>
#include <fourfold/batch/node_hours.hpp>
#include <fourfold/batch/run_attempts.hpp>
#include <fourfold/batch/run_state.hpp>
#include <fourfold/io/line_follower.hpp>
#include <fourfold/telemetry/start_history.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::batch {

/// When a run will be done, against the end of its job.
struct Eta {
  double finish_unix_s = 0;  ///< of a run that has stopped: if it went on now
  /// nothing: the end of the job is not known, or the job is over
  std::optional<bool> in_time = {};
  /// that are needed after this one: ceil(what is left at its end / its length); nothing: its
  /// length is not known. A length counts from the begin of the attempt to the end of the job.
  std::optional<std::int64_t> more_jobs = {};
};

/// What there is to say about a run. Nothing: not known.
struct RunView : telemetry::NewestStep {
  std::filesystem::path log_dir = {};
  double now_unix_s = 0;
  RunVerdict verdict = {};
  std::int64_t step = 0;
  std::int64_t steps = 0;                      ///< 0: not known
  std::optional<double> validation_loss = {};  ///< nats per token
  std::optional<std::int64_t> validation_step = {};
  std::optional<double> deadline_unix_s = {};  ///< the end of the newest job
  /// Until the last step: from now on of a run that goes on; else of what is left behind the
  /// newest checkpoint.
  std::optional<double> remaining_s = {};
  std::optional<Eta> eta = {};  ///< where remaining_s is known
  std::optional<std::int64_t> checkpoint_step = {};
  std::string checkpoint = {};  ///< its path, as the run names it
  std::optional<double> checkpoint_unix_s = {};
  bool stop_file = false;
  bool save_file = false;
  bool finished_file = false;
  bool hang_file = false;
  NodeHours node_hours = {};
  std::vector<RunAttempt> attempts = {};
  /// The newest start that was refused, unless one that was not has begun since. It is not what the
  /// state is of.
  std::optional<RefusedStart> refused = {};
  /// The kept run file of the newest start (kept_run.hpp), and which of the user's files are not
  /// what they were when it was kept; empty: it has none.
  std::filesystem::path run_file = {};
  std::vector<std::filesystem::path> changed = {};
};

/// By the state of the run, its newest attempt, its job's end and what is left of its training.
/// @pre view.remaining_s
Eta eta(const RunView& view);

/// Whether the job that was to go on with the run, as its newest start said, has been refused.
bool was_next_refused(const RunView& view);

/// Looks at one run, again and again if wanted: of metrics.jsonl only what is new is read. It opens
/// for reading, takes no lock and waits for nothing; the files may be changing, cut off, missing or
/// rubbish. Local; one thread per object.
class RunReader {
 public:
  explicit RunReader(std::filesystem::path log_dir);

  /// @param now_unix_s  seconds since 1970
  /// @throws UserError (config) when the directory is there and cannot be looked into, or is no
  /// directory. One that is missing is a run that has not started
  RunView look(double now_unix_s);

 private:
  std::filesystem::path log_dir_;
  io::LineFollower metrics_;
  telemetry::StartHistory history_;
};

}  // namespace fourfold::batch
