// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which files in the directory of a run are the run's own. Their names are fixed, and a user may
/// have a file of such a name there: a run file called config.toml, a trace of another program.
#pragma once

#include <fourfold/base/process_identity.hpp>
#include <fourfold/io/own_file.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace fourfold::telemetry {

/// The first line of config.toml, by which it is known again.
inline constexpr std::string_view effective_config_mark =
    "# Written by fourfold train: the effective run file of the newest start, replaced by the "
    "next.";

/// What a run is going to write besides what every run does.
struct OutputsOfRun {
  bool config = true;                        ///< config.toml
  bool report = false;                       ///< report.html
  std::optional<io::OwnFile> trace = {};     ///< trace.json, as it is told from others'
  std::optional<io::OwnFile> timeline = {};  ///< timeline.svg, which is written with it
};

/// @throws UserError (cannot_write) when a file is there that this process may not append to.
/// Local.
void require_appendable(const std::filesystem::path& file);

/// @throws UserError (cannot_write) when a file is there that this process may not replace, being
///   another user's in a folder where each removes only his own (/tmp), a mount of its own (as
///   containers make of single files), or immutable. Local.
void require_replaceable(const std::filesystem::path& file);

/// Whether lines of events may be appended there: metrics.jsonl or attempts.jsonl of a run, or
/// nothing yet. Local.
bool may_append_events(const std::filesystem::path& file);

/// @throws UserError (config) where attempts.jsonl of a run is somebody else's file. Local.
void refuse_foreign_attempts(const std::filesystem::path& log_dir);

/// For programs whose outputs have the names and marks of a run's own files, wherever they are told
/// to write them. Local.
/// @throws UserError (config) where `output` is the place of such a file in the directory of a run
void refuse_place_of_run(const std::filesystem::path& output);

/// Whether a run has left something in a folder, by what is in the files: others have files of
/// these names, too. Local. What cannot be read is none.
bool holds_record(const std::filesystem::path& folder);

/// Looks at the beginning of each file that the run would replace or append to. What no run has
/// written is not touched. Local; reads at most 256 KiB of each.
/// @throws UserError (config) naming every file that is in the way
void refuse_foreign_files(const std::filesystem::path& log_dir, const OutputsOfRun& outputs);

// Files that grow by a line of JSON per event, {"event":NAME,"time":SECONDS,...}: metrics.jsonl
// (MetricsFile) and attempts.jsonl (batch::AttemptLog). Other programs write such lines, too: here
// is what tells them apart.

/// Whether the beginning of a file is of lines of ours: its first line is an event with the keys
/// that every version has written for it. A full disk, a kill or a crash may have left less: blank
/// bytes (NULs, too) are passed over, and of a line that was cut, what is left counts.
bool begins_with_events(std::string_view head);

/// When the job ends, where somebody has moved its end later since it began: the batch script
/// (slurm/launch.bash) writes RunFiles::job_end() then, "JOB RESTARTS SECONDS".
/// @param job  whose end: a file of another job, or of another start of it, says nothing
/// @return seconds since 1970; nothing where there is no such file, or it says something else
std::optional<std::int64_t> moved_end_of(const BatchJob& job, const std::filesystem::path& log_dir);

}  // namespace fourfold::telemetry
