// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// attempts.jsonl in the directory of a run: when batch jobs have started it, which starts were
/// refused, and how each ended. Written by `fourfold job`, on the node where the batch script runs,
/// and of a refused start by the one rank that tells of it; read to decide whether one more start
/// makes sense, and what it all cost.
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/base/process_identity.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fourfold::batch {

struct AttemptEnd {
  double unix_s = 0;
  ExitCode code = ExitCode::finished;
  std::string reason = {};
  std::optional<std::int64_t> step = {};    ///< completed ones; nothing: not known
  bool retry = false;                       ///< whether another start makes sense
  std::vector<std::string> bad_nodes = {};  ///< to leave out then; not in the file
  std::string next = {};     ///< the job of its chain that waits; empty: none, or not known
  std::string no_next = {};  ///< why there is none; empty: there is one, or it is no chain
  friend bool operator==(const AttemptEnd&, const AttemptEnd&) = default;
};

/// A start that ended before it changed anything of the run: by `fourfold job begin`, or by
/// `fourfold train` after it.
struct RefusedStart {
  BatchJob start = {};  ///< without its chain
  double unix_s = 0;
  ExitCode code = ExitCode::config;
  std::string reason = {};
  friend bool operator==(const RefusedStart&, const RefusedStart&) = default;
};

/// When Slurm took back the nodes of a start of a job, and how many those were by then: it may have
/// taken some before.
struct JobRelease {
  double unix_s = 0;
  int nodes = 1;
  friend bool operator==(const JobRelease&, const JobRelease&) = default;
};

/// One start of a run by a batch job.
struct Attempt {
  BatchJob start = {};
  int nodes = 1;
  /// Those that its job has, where a restart inside it leaves one out; fewer: nodes.
  int held_nodes = 0;
  int idle_nodes = 0;  ///< of `nodes`: no mesh of the run takes them
  /// Which numbers of the nodes that its chain asks for ("2-4") leave some idle.
  std::vector<int> idle_with_nodes = {};
  double began_unix_s = 0;
  /// When Slurm gave the nodes to this start of the job, and took them back. Nothing: not known, or
  /// another launch in it was the first, or the last.
  std::optional<double> job_began_unix_s = {};
  std::optional<JobRelease> released = {};
  std::optional<std::int64_t> from_step = {};  ///< the newest checkpoint then; nothing: none
  /// ExitRecord::unix_s of the exit.json that lay there then: an earlier start's.
  std::optional<double> exit_unix_s = {};
  std::string no_next = {};   ///< why no job of its chain waited then; empty as in AttemptEnd
  std::string run_file = {};  ///< the kept one that it is of (kept_run.hpp); empty: the user's
  std::optional<RefusedStart> refused = {};  ///< by `fourfold train`
  std::optional<AttemptEnd> end = {};        ///< nothing: it goes on, or was cut off
  friend bool operator==(const Attempt&, const Attempt&) = default;
};

/// What an attempts.jsonl holds, each in the order in which it was written.
struct AttemptRecords {
  std::vector<Attempt> attempts = {};
  std::vector<RefusedStart> refused = {};  ///< also those that are in an attempt

  /// The newest attempt that is this launch; null: none.
  const Attempt* find(const BatchJob& start) const;
};

/// The newest attempt of a chain; null: none.
const Attempt* newest_of_chain(std::span<const Attempt> attempts, const std::string& chain);

/// Local; one process at a time writes.
class AttemptLog {
 public:
  explicit AttemptLog(std::filesystem::path file) : file_(std::move(file)) {}

  /// Of a file of any size. What is no record of ours is passed over; a missing file, or what is no
  /// regular file, has none.
  /// @throws UserError (config, data_corrupt) when the file cannot be read: a chain must not forget
  ///   its starts
  AttemptRecords read() const;
  /// @throws UserError (cannot_write)
  void begin(const Attempt& attempt) const;
  /// The end of the newest attempt of that launch. @throws UserError (cannot_write)
  void end(const Attempt& attempt, const AttemptEnd& end) const;
  /// Of the newest attempt of that launch, as a later start found out; the last one that is noted
  /// counts. @throws UserError (cannot_write)
  void release(const Attempt& attempt, const JobRelease& release) const;
  /// A start that is refused; one of the newest attempt of that launch, if that has not ended.
  /// @throws UserError (cannot_write)
  void refuse(const RefusedStart& start) const;

 private:
  void append(const std::string& line) const;

  std::filesystem::path file_;
};

}  // namespace fourfold::batch
