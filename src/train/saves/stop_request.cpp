// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/clock.hpp>
#include <fourfold/base/enum_name.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/base/standstill.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/io/fence.hpp>
#include <fourfold/telemetry/human_text.hpp>
#include <fourfold/telemetry/own_files.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/stop_request.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <string>
#include <utility>

namespace fourfold::train {
namespace {

/// All that people, terminals, launchers and batch systems send for "end soon". SIGXCPU: the limit
/// of CPU time is near.
constexpr std::array<int, 6> stop_signals{SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};
volatile std::sig_atomic_t signal_received = 0;
volatile std::sig_atomic_t was_asked_to_stop = 0;
std::array<struct sigaction, stop_signals.size()> previous_actions;
void (*previous_pipe_action)(int) = SIG_DFL;
sigset_t previous_mask;

bool ignores_hangup = false;

bool is_wanted(int number) {
  return number != SIGHUP || !ignores_hangup;
}

sigset_t watched_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : stop_signals) {
    if (is_wanted(number)) {
      sigaddset(&set, number);
    }
  }
  return set;
}

/// Takes one of the watched signals that waits, or 0.
int take_pending() noexcept {
  const sigset_t watched = watched_set();
  constexpr timespec at_once{};
  return std::max(0, sigtimedwait(&watched, nullptr, &at_once));
}

extern "C" void remember_signal(int number) {
  signal_received = number;
  if (number == SIGUSR1 || number == SIGUSR2) {
    was_asked_to_stop = 1;
  }
}

}  // namespace

std::string_view name(StopReason reason) noexcept {
  constexpr std::array<std::string_view, 6> names{"none",
                                                  "STOP file",
                                                  "time limit",
                                                  "signal",
                                                  "SIGTERM (cancelled, preempted or requeued)",
                                                  "superseded"};
  return name_in(names, reason);
}

bool is_stop_asked_for(const std::filesystem::path& run_directory) noexcept {
  std::error_code ignored;  // a file that cannot be looked at asks for nothing
  return std::filesystem::exists(telemetry::RunFiles(run_directory).stop(), ignored);
}

StopSignals::StopSignals(bool hangup_is_ignored) {
  signal_received = 0;
  was_asked_to_stop = 0;
  ignores_hangup = hangup_is_ignored;
  const sigset_t watched = watched_set();
  pthread_sigmask(SIG_BLOCK, &watched, &previous_mask);
  struct sigaction action {};
  action.sa_handler = remember_signal;
  action.sa_flags = SA_RESTART;  // MPI and file calls go on; the flag is looked at between steps
  struct sigaction ignoring {};
  ignoring.sa_handler = SIG_IGN;
  for (std::size_t i = 0; i < stop_signals.size(); ++i) {
    sigaction(stop_signals[i], is_wanted(stop_signals[i]) ? &action : &ignoring,
              &previous_actions[i]);
  }
  // A reader of the log that has gone (`| head`) must not end the run: lines to it are lost.
  previous_pipe_action = std::signal(SIGPIPE, SIG_IGN);
}

StopSignals::~StopSignals() {
  while (take_pending() != 0) {  // what comes too late is as good as never
  }
  pthread_sigmask(SIG_SETMASK, &previous_mask, nullptr);
  for (std::size_t i = 0; i < stop_signals.size(); ++i) {
    sigaction(stop_signals[i], &previous_actions[i], nullptr);
  }
  std::signal(SIGPIPE, previous_pipe_action);
  signal_received = 0;
}

int StopSignals::received() noexcept {
  if (const int number = take_pending(); number != 0) {
    remember_signal(number);
  }
  return signal_received;
}

bool StopSignals::was_asked() noexcept {
  for (int number = take_pending(); number != 0; number = take_pending()) {
    remember_signal(number);
  }
  return was_asked_to_stop != 0;
}

StopRequest::StopRequest(std::filesystem::path run_directory, std::optional<double> deadline_unix_s,
                         std::function<bool()> holds_run, double warning_s, double suspension_s)
    : run_directory_(std::move(run_directory)),
      deadline_unix_s_(deadline_unix_s),
      holds_run_(std::move(holds_run)),
      warning_s_(warning_s),
      suspension_s_(suspension_s) {}

StopReason StopRequest::local_reason(bool first_rank, double needed_s) const {
  if (first_rank && holds_run_ && !holds_run_()) {
    return StopReason::superseded;
  }
  constexpr double scheduler_ends_s = 15;  // TERM comes when the time is over: before, somebody's
  const double left_s = deadline_unix_s_ ? *deadline_unix_s_ - unix_time_s()
                                         : std::numeric_limits<double>::infinity();
  if (const int number = StopSignals::received(); number != 0) {
    const bool is_termination = number == SIGTERM;
    return left_s < (is_termination ? scheduler_ends_s : warning_s_) ? StopReason::deadline
           : is_termination                                          ? StopReason::termination
                                                                     : StopReason::signal;
  }
  if (left_s < needed_s && unix_time_s() >= end_unknown_until_unix_s_) {
    return StopReason::deadline;
  }
  if (first_rank && is_stop_asked_for(run_directory_)) {
    return StopReason::stop_file;
  }
  return StopReason::none;
}

bool StopRequest::takes_save_file() {
  const std::filesystem::path file = telemetry::RunFiles(run_directory_).save();
  std::error_code error;
  // A folder or a link of that name asks for nothing, and is not ours to remove.
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(file, error))) {
    save_file_stays_ = false;
    return false;
  }
  if (save_file_stays_) {
    return false;
  }
  if ((error = io::remove_fenced(file))) {
    save_file_stays_ = true;
    log::warning(format_message(
        "{}: saving once, but it cannot be removed ({}); remove it to be able to ask again",
        file.string(), error.message()));
  }
  return true;
}

StopReason StopRequest::stop_before_first_step(comm::Communicator& world, double needed_s) const {
  const auto reason = static_cast<std::int64_t>(local_reason(world.rank() == 0, needed_s));
  return static_cast<StopReason>(comm::all_reduce_scalar(world, reason, comm::ReduceOp::max));
}

std::optional<std::int64_t> StopRequest::moved_end(double needed_s) {
  constexpr double least_early_s = 120;
  constexpr double between_looks_s = 5;
  const double now_s = unix_time_s();
  const double early_s = std::max(least_early_s, 2 * needed_s);
  if (*deadline_unix_s_ - now_s > needed_s + early_s || now_s < look_again_unix_s_) {
    return std::nullopt;
  }
  look_again_unix_s_ = now_s + between_looks_s;
  const auto end = telemetry::moved_end_of(BatchJob::of_this_process(), run_directory_);
  return end && static_cast<double>(*end) > *deadline_unix_s_ ? end : std::nullopt;
}

void StopRequest::look_for_standstill() {
  constexpr double until_told_s = 15;
  const double total_s = StandstillWatch::total_s();
  const double since_s = total_s - std::exchange(stood_still_s_, total_s);
  if (since_s >= suspension_s_) {
    end_unknown_until_unix_s_ = unix_time_s() + until_told_s;
    look_again_unix_s_ = 0;
  }
}

Asked StopRequest::poll(comm::Communicator& world, double needed_s) {
  const bool first_rank = world.rank() == 0;
  look_for_standstill();
  std::int64_t moved_end_unix_s = 0;
  if (const auto end = first_rank && deadline_unix_s_ ? moved_end(needed_s) : std::nullopt) {
    moved_end_unix_s = *end;
    log::info(format_message("the job's end was moved: it ends in {}",
                             telemetry::duration_text(static_cast<double>(*end) - unix_time_s())));
  }
  const StopReason reason = local_reason(first_rank, needed_s);
  const bool saves = first_rank && reason != StopReason::superseded && takes_save_file();
  // A rank that asks to stop may hide that the first one asks to save; who stops saves.
  std::array<std::int64_t, 2> reduced{2 * static_cast<std::int64_t>(reason) + (saves ? 1 : 0),
                                      moved_end_unix_s};
  world.host().all_reduce(TensorView(reduced.data(), {2}), comm::ReduceOp::max, {}).wait({});
  const auto [asked, end_unix_s] = reduced;
  if (end_unix_s > 0) {
    deadline_unix_s_ = end_unix_s;
  }
  return {.stop = static_cast<StopReason>(asked / 2), .save = asked % 2 != 0};
}

double time_needed_s(const TimesSoFar& times) {
  constexpr double first_save_bytes_per_s = 50e6;
  const double evaluation_s =
      times.evaluation_s > 0 ? times.evaluation_s : times.evaluation_steps * times.step_s;
  const double guess_s = times.save_bytes / first_save_bytes_per_s;
  const double save_s = times.save_s > 0 ? times.save_s : guess_s;
  const double local_save_s = times.local_save_s > 0 ? times.local_save_s : guess_s;
  const double saves = 1 + times.saves_under_way;
  return times.step_s + (times.evaluation_due ? 1.25 * evaluation_s : 0) + saves * 1.5 * save_s +
         (times.local_save_due ? 1.5 * local_save_s : 0) + times.margin_s;
}

std::optional<double> deadline_from_environment(double now_unix_s) {
  constexpr const char* own = "FOURFOLD_DEADLINE";
  for (const char* const name : {own, "SLURM_JOB_END_TIME"}) {
    const std::string text = environment_text(name);
    if (text.empty()) {
      continue;
    }
    char* end = nullptr;
    const double seconds = std::strtod(text.c_str(), &end);
    const bool is_time = *end == '\0' && seconds > 0 && std::isfinite(seconds);
    if (is_time && seconds > now_unix_s) {
      log::info(
          format_message("the job ends in {} ({}): the run saves and stops before that; unset it "
                         "if another job has left it here",
                         telemetry::duration_text(seconds - now_unix_s), name));
      return seconds;
    }
    if (!is_time && name == own) {
      throw UserError(ExitCode::config,
                      format_message("FOURFOLD_DEADLINE is \"{}\" (it must be the end of the job "
                                     "in seconds since 1970); set it with date +%s, or unset it",
                                     printable(text)));
    }
    log::warning(
        format_message("{}={} is ignored ({}); set FOURFOLD_DEADLINE if this job ends at some time",
                       name, printable(text),
                       is_time ? "that time is over: it was meant for another job"
                               : "that is no time in seconds since 1970"));
  }
  if (!BatchJob::of_this_process().id.empty()) {
    log::info(
        "deadline unknown: this job may end at some time that nothing tells the run; set "
        "FOURFOLD_DEADLINE (date +%s of its end) so that it saves before that");
  }
  return std::nullopt;
}

double warning_from_environment() {
  constexpr const char* name = "FOURFOLD_WARNING_S";
  constexpr double longest_s = 86400;
  const std::string text = environment_text(name);
  if (text.empty()) {
    return usual_warning_s;
  }
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !(seconds >= 0 && seconds <= longest_s)) {
    throw UserError(
        ExitCode::config,
        format_message("{} is \"{}\" (it must be seconds from 0 to {}: how shortly before its end "
                       "the batch system signals the job's steps); correct it, or unset it",
                       name, printable(text), longest_s));
  }
  return seconds;
}

}  // namespace fourfold::train
