// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

namespace fourfold::train {

/// Why a run should save and stop before its last step, the most urgent one last. A signal that
/// comes when the job's time is nearly over is the scheduler's word for that: `deadline`. Another
/// SIGTERM is a job that is cancelled, preempted or put back into the queue. After `superseded`
/// nothing may be saved or written: another start has taken the run over.
enum class StopReason : std::uint8_t { none, stop_file, deadline, signal, termination, superseded };
std::string_view name(StopReason reason) noexcept;

/// What is asked of a run between two steps.
struct Asked {
  StopReason stop = StopReason::none;
  bool save = false;  ///< a checkpoint out of turn
  friend bool operator==(const Asked&, const Asked&) = default;
};

/// Whether a person asks for no more training: a file STOP lies in the run's directory.
bool is_stop_asked_for(const std::filesystem::path& run_directory) noexcept;

/// Holds SIGTERM, SIGINT, SIGHUP (unless it is ignored, as under nohup), SIGUSR1, SIGUSR2 and
/// SIGXCPU back, so that they interrupt nothing: the run asks between steps whether one waits.
/// Ignores SIGPIPE: that nobody reads the log any more is no reason to end. Not every library's
/// kernels survive a handler that runs in the middle of them (oneDNN 2.6 with AVX-512 writes below
/// the stack pointer). One per process, made by main before there are other threads, which then
/// hold them back too; what a thread made earlier catches is noted by a handler. Both end when it
/// is destroyed.
class StopSignals {
 public:
  /// @param hangup_is_ignored  SIGHUP stays ignored: the process was started by `nohup`
  explicit StopSignals(bool hangup_is_ignored = false);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal that came, or 0.
  static int received() noexcept;
  /// Whether USR1 or USR2 came, by which people ask. TERM is no person's where a rank has died:
  /// srun sends it to the others.
  static bool was_asked() noexcept;
};

/// So many seconds before the end of a job Slurm may send the signal that was asked for
/// (`--signal=USR2@180`, and up to a minute earlier).
inline constexpr double usual_warning_s = 250;

/// Asks between two steps whether to go on, and whether to save. Reasons reach ranks at different
/// moments, so the ranks agree on the most urgent one.
class StopRequest {
 public:
  /// @param run_directory  where STOP and SAVE are looked for, by rank 0
  /// @param deadline_unix_s  when the job ends; FOURFOLD_DEADLINE or SLURM_JOB_END_TIME. When that
  ///   is near rank 0 looks for RunFiles::job_end(), by which the batch script tells a later one
  /// @param holds_run  whether this start may still write there, asked by rank 0; empty: always
  /// @param warning_s  a signal this shortly before the end of the job is the batch system's word
  ///   of it, and no person's
  /// @param suspension_s  a standstill of this process as long as that is a suspension by Slurm,
  ///   which moves the end: the script that tells of it looks as soon as after 30 s
  StopRequest(std::filesystem::path run_directory, std::optional<double> deadline_unix_s,
              std::function<bool()> holds_run = {}, double warning_s = usual_warning_s,
              double suspension_s = 30);

  /// Collective; the same answer on all ranks. A host round trip of sixteen bytes.
  /// @param needed_s  time that one more step and a save will take, this rank's estimate
  Asked poll(comm::Communicator& world, double needed_s);
  /// The same before the first step: a SAVE file stays where it is.
  StopReason stop_before_first_step(comm::Communicator& world, double needed_s) const;

 private:
  StopReason local_reason(bool first_rank, double needed_s) const;
  bool takes_save_file();
  std::optional<std::int64_t> moved_end(double needed_s);
  /// Where the job stood still since the last poll, suspended, Slurm has moved its end by as long.
  /// Who tells of that needs a few seconds.
  void look_for_standstill();

  std::filesystem::path run_directory_;
  std::optional<double> deadline_unix_s_;
  std::function<bool()> holds_run_;
  double warning_s_ = usual_warning_s;
  bool save_file_stays_ = false;  ///< it cannot be removed, and was obeyed
  double look_again_unix_s_ = 0;  ///< for a job's end that was moved
  double suspension_s_ = 0;
  double stood_still_s_ = 0;  ///< up to the last poll
  double end_unknown_until_unix_s_ = 0;
};

/// What is known when it is asked whether one more step fits in. Wall times on this rank in
/// seconds; 0: there was none yet.
struct TimesSoFar {
  double step_s = 0;            ///< the longest of the last four
  double evaluation_s = 0;      ///< the newest
  double save_s = 0;            ///< the longest of the last eight, until it was on stable storage
  int saves_under_way = 0;      ///< in the background; the end waits for them
  bool evaluation_due = false;  ///< after the next step
  /// Samples of an evaluation as a multiple of those of a step; for the first evaluation.
  double evaluation_steps = 0;
  double save_bytes = 0;        ///< that this rank writes; for the first save
  bool local_save_due = false;  ///< after the next step
  double local_save_s = 0;
  double margin_s = 5;  ///< checkpoint.margin_s
};

/// Seconds for one more step, the evaluation that is due after it and a save, with room for a slow
/// file system, and margin_s for the end of the process. What was never measured is guessed on the
/// safe side: an evaluation costs no more per sample than training, a save goes at 50 MB/s per
/// rank.
double time_needed_s(const TimesSoFar& times);

/// The end of the job as the environment tells it: FOURFOLD_DEADLINE, else SLURM_JOB_END_TIME
/// (Slurm >= 23.02), in seconds since 1970. One that is over was inherited from another job; it is
/// ignored with a warning that names the variable, and so is a SLURM_JOB_END_TIME that is no time.
/// @param now_unix_s  when this start began
/// @throws UserError (exit code config) when FOURFOLD_DEADLINE is set but is no number
std::optional<double> deadline_from_environment(double now_unix_s);

/// FOURFOLD_WARNING_S: how shortly before the end of the job a signal to this process is the batch
/// system's. 0: never, as from the batch scripts, which keep Slurm's to themselves.
/// usual_warning_s where it is not set.
/// @throws UserError (exit code config) when it is no number of seconds from 0 to 86400
double warning_from_environment();

/// The longest of the last N times, in seconds: what the next one may take where they differ.
template <std::size_t N>
requires(N >= 2) class LongestOfLast {
 public:
  void add(double time_s) noexcept {
    times_[next_] = time_s;
    next_ = (next_ + 1) % N;
  }
  /// 0: there was none yet. A single one that is far from the others, as where a file system stood
  /// still in it, counts as `most_times` the next longest, or as `always_s` if that is more.
  double value(double most_times = 8, double always_s = 5) const noexcept {
    std::array<double, N> times = times_;
    std::sort(times.begin(), times.end());
    const double longest = times[N - 1];
    const double next = times[N - 2];
    return next > 0 ? std::min(longest, std::max(most_times * next, always_s)) : longest;
  }

 private:
  std::array<double, N> times_{};
  std::size_t next_ = 0;
};

}  // namespace fourfold::train
