// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Who hangs: threads beside the ranks tell each other, over connections of their own, what each
/// rank is in, and end a run that would otherwise burn its time in silence.
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/comm/communicator.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fourfold::comm {

struct WatchdogLimits {
  double deadline_s = 600;  ///< that a rank may block in one call
  double silence_s = 60;    ///< without a sign of life from a rank
};

/// Why a run was ended.
struct HangDiagnosis {
  enum class Kind : std::uint8_t {
    ended,
    host_ended,
    stopped,
    unreachable,
    collective_mismatch,
    late,
    not_started,
    faulty  ///< communication has failed, and nobody is seen to be the cause
  };
  struct SuspectRank {
    int rank = 0;
    std::string host;  ///< empty: not known, of a rank that has not started
    std::string what;  ///< "has ended without a word; its last call was ..."
  };

  Kind kind = Kind::late;
  std::vector<SuspectRank> suspects = {};  ///< by rank
  std::vector<int> waiting = {};           ///< ranks that wait, directly or not, for one of them
  std::string reason = {};                 ///< all of it, in a few lines

  /// node_fault when machines are gone or their communication has failed, else hang.
  ExitCode code() const noexcept;
  /// CollectiveTasks to leave out next time: those of ranks that are stopped, have not come to
  /// MPI_Init, or are gone all together.
  std::vector<std::string> bad_hosts() const;
};

struct WatchdogOptions {
  WatchdogLimits limits = {};
  /// Called by the rank that diagnoses, on a thread of the watch, before all ranks end.
  /// @param report  JSON: the verdict, with the last calls and the stack of every rank that could
  /// be
  ///   asked
  std::function<void(const HangDiagnosis& verdict, const std::string& report)> on_hang = {};
  /// Called on ranks that hear the others (rank 0 among them), once, on a thread of the watch, when
  /// a rank is about to end all: some 0.2 s are left, and no destructor runs. Must not throw.
  std::function<void()> on_end = {};
};

/// Watches one rank while it lives, and with it all ranks. Rank 0 diagnoses; when rank 0 itself is
/// silent or gone, the first rank on another machine (or rank 1) does.
///
/// A verdict is written to stderr; the ranks that can be asked tell their last calls and where they
/// stand; then every process ends with the verdict's code at once, from whatever it is in.
///
/// Ranks meet over TCP connections to the machines of the servers, by the names that MPI gives
/// them. Where there are none (a firewall) a rank is not diagnosed, which is said once in the log.
class Watchdog {
 public:
  /// Collective over `world`, which must be all processes, one rank each; blocks until addresses
  /// are exchanged. `world` has to outlive the watch.
  /// @param host  of this rank, as others can resolve it
  Watchdog(Communicator& world, const std::string& host, WatchdogOptions options);
  /// Says good-bye: what this rank does from here on is not diagnosed.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// To be called before this process ends all ranks by itself, so that its end is not taken for a
  /// hang. Does nothing without a watch.
  static void announce_abort() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fourfold::comm
