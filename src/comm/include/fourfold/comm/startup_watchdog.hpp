// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Who does not start: ranks that wait in MPI_Init for one that does not come have no MPI to ask
/// it, and would wait until the job's time is over.
#pragma once

#include <fourfold/comm/watchdog.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::comm {

/// Of the folders in which ranks meet, for who sweeps what killed ones have left.
inline constexpr std::string_view startup_rendezvous_prefix = ".start-watch-";
/// Whether a folder is one of these: by its name, and by nothing but ranks' files in it. Local.
bool is_startup_rendezvous(const std::filesystem::path& folder);

struct StartupWatchdogOptions {
  double limit_s = 300;  ///< that this process may wait in MPI_Init
  /// Seen by all ranks; where they meet when the limit has passed, and not before. Made then.
  /// Empty: they do not, and nobody is named.
  std::filesystem::path folder = {};
  /// Expands the batch system's list of nodes ("node[0-3]"); what cannot be expanded is empty.
  std::function<std::vector<std::string>(const std::string&)> expand_nodes = {};
  /// Asked every quarter of a second, on the watch's thread: the signal that has told this process
  /// to stop; 0: none. Ranks that were told before they could listen do not come to MPI_Init: a
  /// process that still waits there two seconds later ends with ExitCode::stopped_saved.
  std::function<int()> stop_signal = {};
  /// Called by the lowest rank that waits, on the watch's thread, before all end; for 20 s at most.
  /// @param report  JSON, as of a run that hangs
  std::function<void(const HangDiagnosis& verdict, const std::string& report)> on_hang = {};
};

/// Watches the start of this process, from its making, which is before MPI_Init, to its end, which
/// is after that. Local: it communicates with nothing but files.
///
/// When the limit has passed, a process writes a file of its own into a folder in `folder`. The
/// others look for that folder every now and then, so that one that came late joins in. A while
/// later the lowest rank that is there knows who is not: it tells stderr, calls on_hang, removes
/// the folder and ends with ExitCode::hang, which its launcher takes for the end of all. The others
/// end by themselves, should it not. A start that goes on after all leaves nothing behind.
///
/// Time in which a process does not run (a job that is suspended) does not count.
class StartupWatchdog {
 public:
  /// @pre limit_s > 0
  explicit StartupWatchdog(StartupWatchdogOptions options);
  /// The start is over. Waits for nothing, unless this process has just been found to hang: then it
  /// ends here.
  ~StartupWatchdog();
  StartupWatchdog(const StartupWatchdog&) = delete;
  StartupWatchdog& operator=(const StartupWatchdog&) = delete;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  ///< the thread's as well, which a dead file system may keep
};

}  // namespace fourfold::comm
