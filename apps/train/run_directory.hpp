// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run_end.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/watchdog.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/exit_status.hpp>
#include <fourfold/telemetry/metrics.hpp>
#include <fourfold/telemetry/run_files.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace fourfold::train_program {

/// What one start of a run tells about itself: files in log.dir and lines on the terminal. Every
/// rank has one. Rank 0's writes; the others' follow the same records, and write nothing but
/// exit.json if they learn of an error that rank 0 did not tell of.
class RunDirectory {
 public:
  /// Touches nothing yet.
  /// @param dry_run   no file is ever touched; the terminal alone
  /// @param run_file  what the user started with: as config.toml in log.dir it is not replaced
  RunDirectory(const runfile::EffectiveConfig& effective, int rank, bool dry_run,
               const std::filesystem::path& run_file = {});
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  /// Rank 0 takes the lease of log.dir, for which it may wait, and opens the terminal. No file of
  /// the run changes before the metrics start: a start that is refused leaves all as it is. Then,
  /// in this order: exit.json says "running"; what killed starts left unfinished and FINISHED go;
  /// config.toml is replaced; metrics and status are written.
  /// @throws UserError (cannot_write), (no_progress) while a STOP file lies in log.dir, or (config)
  ///   when another start of the run lives, or a file that no run wrote is in the way
  void open();

  /// Tells the other ranks who has the lease of this start, and whose another one is then.
  /// Collective, once it is open.
  void agree_on_holder(comm::Communicator& world);

  /// Whether this start may write here: no other one has taken over. Any rank, any thread.
  bool is_ours() const;
  /// Looks now, not at what the last beats of the lease told.
  /// @throws UserError (no_progress) when another start has taken over
  void require_ours() const;

  /// Whether the files here say, as a whole, that the run is finished, at however many steps.
  /// @pre rank 0
  bool is_finished() const;

  /// To be handed to the trainer, on every rank.
  telemetry::MetricsLog& metrics() noexcept { return metrics_; }

  /// An end that is no error: write_run_end(). On rank 0; nothing on the others.
  /// @throws UserError (no_progress) when it is not ours any more; cannot_write
  void finish(const telemetry::ExitStatus& status);

  /// The same for an error, with the newest step and checkpoint known. On a rank other than 0:
  /// exit.json alone, unless its end is told there already. To be called when rank 0 has had the
  /// time to tell of its own error, so that one rank writes (program::run sees to that). Nothing
  /// where log.dir lies in a checkpoint.
  ///
  /// Before the metrics start: exit.json alone for the codes internal, stopped_saved, node_fault
  /// and hang. All others refuse the start, and leave one line in attempts.jsonl where `fourfold
  /// job begin` has noted the start, else nothing.
  /// @throws UserError (cannot_write)
  void fail(ExitCode code, const std::string& message);

  /// The run hangs and is about to be ended: hang.json, and exit.json with the verdict. For the
  /// thread that watches; what cannot be written is a warning.
  void note_hang(const comm::HangDiagnosis& verdict, const std::string& report) const;

 private:
  /// To the metrics. @pre rank 0, not a dry run
  void add_files();
  /// Whether there is room for what a start writes here, and all of it may be written: else the
  /// start is refused, and the record of the one before stays. @throws UserError (cannot_write)
  void try_files() const;
  std::string config_text() const;
  /// What is done once when the run really starts, after exit.json.
  void take_over();
  void note_refusal(ExitCode code, const std::string& message) const;
  /// Whether exit.json has the end of this start.
  bool is_end_told() const;
  /// Whether an end may be noted: else no earlier one can be mistaken for it, or what is there is
  /// another start's, or a checkpoint, which was refused.
  bool may_write() const;
  /// What a process writes that may not have the lease itself: another rank, or rank 0 before it.
  /// @throws UserError (cannot_write), and what `write` throws
  void write_if_ours(const std::function<void()>& write) const;
  /// For others. Until the ranks have agreed, the batch system's job tells whose a lease is.
  bool is_leased_to_another() const;

  runfile::EffectiveConfig effective_;
  std::filesystem::path folder_;
  telemetry::RunFiles files_;
  int rank_;
  bool dry_run_;
  bool writes_config_;                         ///< the run file is another one
  std::unique_ptr<io::DirectoryLease> lease_;  ///< of rank 0, once it is open
  std::string holder_;                         ///< LeaseHolder::str() of rank 0, once agreed on
  std::optional<double> exit_before_unix_s_;   ///< of the exit.json of an earlier start
  telemetry::MetricsLog metrics_;
  std::shared_ptr<SharedLastState> last_;
};

}  // namespace fourfold::train_program
