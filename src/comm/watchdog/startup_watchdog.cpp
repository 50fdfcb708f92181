// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"
#include "startup_analysis.hpp"
#include "startup_rendezvous.hpp"
#include "watchdog_server.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/comm/startup_watchdog.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace fourfold::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto tick = 250ms;
constexpr int hang_code = static_cast<int>(ExitCode::hang);

std::string own_host() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

std::string command_of_parent() {
  std::ifstream file(fmt::format("/proc/{}/cmdline", ::getppid()), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string error_text(const std::string& reason) {
  return format_message("fourfold: error: the start hangs and is ended (code {})\n  {}\n",
                        hang_code, MadeLines{reason});
}

/// Between two looks for a meeting.
double look_s(double limit_s) {
  return std::clamp(limit_s / 20, 0.5, 15.0);
}
/// Ranks come to it a look late, and clients of NFS may take a minute to see what others made.
double meeting_s(double limit_s) {
  return std::clamp(limit_s / 4, 3.0, 75.0);
}
/// For on_hang.
constexpr double to_analyse_s = 30;

}  // namespace

struct StartupWatchdog::Impl {
  explicit Impl(StartupWatchdogOptions its_options)
      : options(std::move(its_options)),
        launch(launch_of_this_process()),
        meeting(options.folder, name_of_start(command_of_parent()), launch.rank) {}

  bool lives_for(double seconds);
  void end_if_told_to_stop();
  bool comes_to_limit();
  void watch();
  void meet();
  void wait_for_diagnosis();
  void diagnose_alone(const std::string& why);
  WorldState state() const;
  bool claim();
  [[noreturn]] void execute(const HangDiagnosis& verdict, const WorldState& start) const;

  StartupWatchdogOptions options;
  Launch launch;
  StartMeeting meeting;
  std::mutex mutex;
  std::condition_variable wake;
  bool is_over = false;       ///< MPI_Init has returned
  bool is_diagnosed = false;  ///< too late: this process ends
  bool has_left = false;      ///< the thread has
  int stop_signal = 0;        ///< that came, of the thread
  std::chrono::milliseconds told_for{0};
  std::thread thread;
};

/// Counts in short ticks, of which one at most is longer for a process that was stopped meanwhile.
/// @return false: the start is over
bool StartupWatchdog::Impl::lives_for(double seconds) {
  std::unique_lock lock(mutex);
  for (auto lived = 0ms; lived < std::chrono::duration<double>(seconds); lived += tick) {
    if (wake.wait_for(lock, tick, [this] { return is_over; })) {
      return false;
    }
    end_if_told_to_stop();
  }
  return !is_over;
}

/// The start may be over soon, and knows what to do about a signal then.
void StartupWatchdog::Impl::end_if_told_to_stop() {
  if (stop_signal == 0) {
    stop_signal = options.stop_signal ? options.stop_signal() : 0;
  } else if ((told_for += tick) >= 2s) {
    log::write_stderr(format_message(
        "fourfold: stopped before the first step by signal {}, while ranks waited in MPI_Init\n",
        stop_signal));
    ::_exit(static_cast<int>(ExitCode::stopped_saved));
  }
}

/// Its own, or that of another rank, which has called a meeting.
bool StartupWatchdog::Impl::comes_to_limit() {
  const double between_s = look_s(options.limit_s);
  for (double lived_s = 0; lived_s < options.limit_s; lived_s += between_s) {
    if (!lives_for(std::min(between_s, options.limit_s - lived_s))) {
      return false;
    }
    if (!options.folder.empty() && launch.size > 1 && meeting.is_called()) {
      return true;
    }
  }
  return true;
}

/// From here on MPI_Init returns to a process that ends. @return false: it has returned before
bool StartupWatchdog::Impl::claim() {
  const std::scoped_lock lock(mutex);
  is_diagnosed = !is_over;
  return is_diagnosed;
}

void StartupWatchdog::Impl::watch() {
  if (!comes_to_limit()) {
    return;
  }
  if (launch.size == 1) {
    diagnose_alone("");
  } else if (options.folder.empty()) {
    diagnose_alone("ranks have no folder to meet in");
  } else {
    meet();
    meeting.leave();
  }
}

void StartupWatchdog::Impl::meet() {
  if (!meeting.join({own_host(), ::getpid(), ranks_beside(launch)})) {
    diagnose_alone(fmt::format("{} cannot be written", meeting.folder().string()));
    return;
  }
  if (!lives_for(meeting_s(options.limit_s))) {
    return;
  }
  if (meeting.has_come_below(options.limit_s)) {
    wait_for_diagnosis();
    return;
  }
  const WorldState start = state();
  if (!start.ranks[launch.rank].is_known) {
    wait_for_diagnosis();  // who has ended the meeting has told, and the launcher ends all soon
  } else if (claim()) {
    execute(analyse_start(start, options.limit_s), start);
  }
}

void StartupWatchdog::Impl::wait_for_diagnosis() {
  if (lives_for(meeting_s(options.limit_s) + to_analyse_s) && claim()) {
    log::write_stderr(error_text(format_message(
        "MPI_Init has not come back to rank {} within {:g} s, and the lowest rank that "
        "waits there has not said who is missing",
        launch.rank, options.limit_s)));
    meeting.end();
    ::_exit(hang_code);
  }
}

/// Of ranks that cannot meet the first one speaks: the launcher ends the others then.
void StartupWatchdog::Impl::diagnose_alone(const std::string& why) {
  const WorldState start = state_of_start(1, options.limit_s, {}, {});
  HangDiagnosis verdict = analyse_start(start, options.limit_s);
  if (!why.empty()) {
    verdict.reason = fmt::format(
        "MPI_Init has not come back to rank {} within {:g} s (who is missing is not "
        "known: {}); look for a process that stands still before it, or raise "
        "watchdog.start_s if this start is only slow",
        launch.rank, options.limit_s, why);
  }
  if (lives_for(std::min(launch.rank, 20)) && claim()) {
    execute(verdict, start);
  }
}

WorldState StartupWatchdog::Impl::state() const {
  const std::string list = environment_text("SLURM_STEP_NODELIST");
  std::vector<std::string> nodes;
  if (!list.empty() && options.expand_nodes) {
    nodes =
        nodes_of_ranks(options.expand_nodes(list), environment_text("SLURM_STEP_TASKS_PER_NODE"),
                       environment_text("SLURM_DISTRIBUTION"), launch.size);
  }
  return state_of_start(launch.size, options.limit_s, meeting.arrivals(options.limit_s), nodes);
}

void StartupWatchdog::Impl::execute(const HangDiagnosis& verdict, const WorldState& start) const {
  log::write_stderr(error_text(verdict.reason));
  if (options.on_hang) {
    try {
      options.on_hang(verdict, report_of(start, verdict, {}));
    } catch (const std::exception& error) {  // ended it is in any case
      log::write_stderr(format_message("fourfold: error: {}\n", error.what()));
    }
  }
  if (launch.size > 1 && !options.folder.empty()) {
    meeting.end();
  }
  ::_exit(hang_code);
}

StartupWatchdog::StartupWatchdog(StartupWatchdogOptions options)
    : impl_(std::make_shared<Impl>(std::move(options))) {
  FOURFOLD_EXPECT(impl_->options.limit_s > 0);
  impl_->thread = std::thread([impl = impl_] {
    log::set_thread_rank(impl->launch.rank, impl->launch.size);
    try {
      impl->watch();
    } catch (const std::exception& error) {  // the start itself may well go on
      log::local(log::Level::warning,
                 format_message("the start is not watched any more ({})", error.what()));
    }
    const std::scoped_lock lock(impl->mutex);
    impl->has_left = true;
    impl->wake.notify_all();
  });
}

StartupWatchdog::~StartupWatchdog() {
  constexpr auto to_leave = 5s;
  std::unique_lock lock(impl_->mutex);
  impl_->is_over = true;
  impl_->wake.notify_all();
  const bool is_diagnosed = impl_->is_diagnosed;
  const bool leaves = impl_->wake.wait_for(lock, to_leave, [this] { return impl_->has_left; });
  lock.unlock();
  if (leaves || is_diagnosed) {
    impl_->thread.join();
  } else {
    impl_->thread.detach();  // it asks a file system that does not answer
  }
}

}  // namespace fourfold::comm
