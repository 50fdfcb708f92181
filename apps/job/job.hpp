// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/batch/attempt_log.hpp>
#include <fourfold/batch/chain.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace fourfold::job {

struct Request {
  std::string run_file;
  /// The kept one that this job is known to go on with (batch/kept_run.hpp); empty: not known.
  std::string kept_run_file = {};
  std::vector<std::string> overrides;
  std::vector<std::string> allowed_changes;  ///< as train's --allow-change
  /// The other words of train's command line: not understood here, so that what they mean for a run
  /// that is finished only a start can say.
  std::vector<std::string> other_words = {};
  batch::ChainLimits limits;
  /// An earlier start of this job or chain has kept what it trains, and Slurm does not say where.
  bool is_later = false;
  bool tell_files = false;  ///< where the run will tell its end, and where nodes keep steps
  int launcher_code = 0;
  std::string launcher_words;  ///< batch::LauncherSaid, as the next
  std::string memory_limit = {};
  std::string next = {};        ///< the job that is to go on with the run; empty: not known
  std::string no_next = {};     ///< why there is none
  std::string stopped_by = {};  ///< the signal that came before anything was launched
  bool preempted = false;       ///< the scheduler wanted the nodes for another job
  bool time_limit = false;      ///< the scheduler ended the job at its time limit
  std::vector<std::string> nodes_gone = {};  ///< of the job, that do not answer Slurm
};

/// `fourfold train --dry-run`, of which nothing is noted.
bool is_rehearsal(const Request& request);

/// Prints "start" when the run should be started, "finished" when there is nothing left to do, and
/// "queue" when no mesh fits on what a restart inside the job has (BatchJob::launch).
/// After "start", a line each: how many of the job's tasks to start, or "all", and what `fourfold
/// train` gets besides, so that a run with mesh.dp = "auto" takes what is there
/// (train/elastic_mesh.hpp), and the run file is the one that the chain began with: "--run-file",
/// the one of the command line, and that to take in its place; "--set" and a value; and
/// "--exit-file" with the path of exit.json and "--node-local-dir" with that of the nodes' own
/// steps, if that is asked for. Notes the attempt, and the first of a chain keeps its run
/// (batch/kept_run.hpp).
/// @throws UserError with the code that the batch script should end with, when the run must not be
/// started: noted in attempts.jsonl, and nothing else of the run changes
ExitCode begin(const Request& request);

/// Notes how the attempt ended, and prints "again" when the run should be started once more,
/// "finished" or "stop"; after "again", the nodes to leave out then, with commas. "superseded"
/// when the chain has gone on without this start. @return the code that the batch script should end
/// with
ExitCode end(const Request& request);

/// This start of this job, as Slurm names it, beginning now.
batch::Attempt this_attempt();

/// Of the run in log_dir.
batch::AttemptLog log_in(const std::filesystem::path& log_dir);

}  // namespace fourfold::job
