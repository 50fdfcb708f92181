// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the starts of a chain train: what the first of them began with (batch/kept_run.hpp).
#pragma once

#include "job.hpp"

#include <fourfold/batch/attempt_log.hpp>
#include <fourfold/batch/kept_run.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fourfold::job {

/// The run file and the overrides of this start: those that its chain began with, where they are
/// kept, and else the user's.
struct ChainRun {
  std::string run_file;
  std::vector<std::string> overrides;
  std::optional<batch::KeptRun> kept = {};
};

/// The run file that says what this start trains: the kept one that is named, else the user's.
std::string named_run_file(const Request& request);

/// The run's folder. Of a run file that is kept in it without reading that: its user may just edit
/// it for the next start, or have removed it. @throws UserError as runfile::log_dir_of
std::filesystem::path log_dir_of(const Request& request);

/// What `start` trains. Tells of files of the user's that have changed since they were kept.
/// @throws UserError as batch::kept_run_of, and as runfile::log_dir_of; config where what was kept
/// is gone
ChainRun run_of_chain(const Request& request, const batch::Attempt& start);

/// A kept run is that of the directory it lies in: one that was copied or moved with it would train
/// where it lay. @throws UserError (config)
void refuse_moved(const batch::KeptRun& kept, const runfile::RunConfig& config);

/// Keeps the run for the later starts of its chain, where there may be some.
/// @param text  runfile::run_file_text() before it was read
/// @return where; nothing where it cannot be kept, which the log says
std::optional<batch::KeptRun> keep(const Request& request, const std::string& text,
                                   const runfile::EffectiveConfig& effective);

/// What `fourfold train` gets for the kept run, a line each.
std::string kept_lines(const Request& request, const std::optional<batch::KeptRun>& kept);

/// A first start of a chain that `fourfold train` has refused leaves of the run what was there:
/// whoever mends the run file starts with that one.
void forget_refused(const std::vector<batch::Attempt>& attempts, const batch::Attempt& refused);

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
