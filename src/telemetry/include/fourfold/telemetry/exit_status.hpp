// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// exit.json: how a run ended, for the batch script. Launchers report a maximum over ranks or a
/// signal; this file says what really happened. While a run goes on it says so, and so it does
/// after one that was killed without a word.
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/base/process_identity.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::telemetry {

struct ExitStatus {
  ExitCode code = ExitCode::finished;
  std::string reason = {};                     ///< the message the user saw, or "finished"
  std::optional<std::int64_t> step = {};       ///< completed steps; nothing: ended before it knew
  std::optional<std::string> checkpoint = {};  ///< newest good one; empty: none; nothing: as step
  std::vector<std::string> bad_nodes = {};     ///< hosts to leave out next time
  bool hold = false;                           ///< nobody but a person should start it again
  bool told_to_stop = false;  ///< USR1 or USR2 had come, and the run ended before it could obey
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

/// The reason of a run that was told to stop: "saved and stopped: CAUSE", or of one that had not
/// begun, "stopped before the first step: CAUSE".
/// @param checkpoint  the newest good one; empty: none
std::string stop_reason(const std::string& checkpoint, std::string_view cause);

/// Whether starting the same run again makes sense without a person looking at it: true for
/// stopped_saved, node_fault and hang.
bool worth_retrying(ExitCode code) noexcept;

/// Writes {"code","reason","step","checkpoint","bad_nodes","retry"}, and {"time","job","restart"},
/// and "launch" if it is not 0, of now and of this process's job, so that readers see the old file
/// or the new one, never a part. What is not known is null; "retry" is worth_retrying(code) unless
/// `hold`; "told_to_stop" is there where it is true. Called by one rank: the lowest that lives.
/// @throws UserError (exit code cannot_write)
void write_exit_status(const std::filesystem::path& file, const ExitStatus& status);

/// Writes the same with the reason "running" and null for what only the end will tell, "code" and
/// "retry" among it. To be called when the run really starts, before anything else of it changes: a
/// start that is refused leaves the end of the one before.
/// @throws UserError (exit code cannot_write)
void write_running(const std::filesystem::path& file);

/// What an exit.json says.
struct ExitRecord {
  /// What write_running() leaves: a run has started, and nobody has noted its end.
  bool says_running = false;
  /// Nothing when the file is absent, says "running" or is no exit status.
  std::optional<ExitStatus> end = {};
  BatchJob by = {};  ///< the job that wrote it, without its chain; no id: none
  /// When it was written, by the clock of the rank that wrote it: tells two apart. Nothing: it does
  /// not say.
  std::optional<double> unix_s = {};

  /// Whether a start of this job, or one outside of all jobs, wrote it.
  bool is_of(const BatchJob& job) const { return by.is_same_launch(job); }
};
ExitRecord read_exit(const std::filesystem::path& file);

/// Whether text is, as a whole, what write_exit_status() or write_running() writes.
bool is_exit_text(std::string_view text);
/// The same of hang.json, which comm::report_of() makes.
bool is_hang_text(std::string_view text);

}  // namespace fourfold::telemetry
