// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/standstill.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

namespace fourfold {
namespace {

constexpr double between_looks_s = 0.5;

/// What the thread has seen so far.
struct Seen {
  std::mutex mutex;
  bool is_watched = false;
  double least_s = 0;
  double last_look_s = 0;
  double total_s = 0;

  /// @pre the mutex is held
  double since_last_look_s() const noexcept {
    const double gap_s = steady_time_s() - last_look_s - between_looks_s;
    return is_watched && gap_s >= least_s ? gap_s : 0;
  }
};

Seen& seen() noexcept {
  static Seen one;
  return one;
}

/// Notes for how long this thread itself was not let run.
void look(const std::stop_token& end) {
  std::condition_variable_any wake;
  std::unique_lock lock(seen().mutex);
  while (!end.stop_requested()) {
    wake.wait_for(lock, end, std::chrono::duration<double>(between_looks_s), [] { return false; });
    seen().total_s += seen().since_last_look_s();
    seen().last_look_s = steady_time_s();
  }
}

}  // namespace

StandstillWatch::StandstillWatch(double least_s) {
  {
    const std::scoped_lock lock(seen().mutex);
    FOURFOLD_EXPECT(!seen().is_watched);
    seen().is_watched = true;
    seen().least_s = least_s;
    seen().last_look_s = steady_time_s();
    seen().total_s = 0;
  }
  looking_ = std::jthread(look);
}

StandstillWatch::~StandstillWatch() {
  looking_.request_stop();
  looking_.join();
  const std::scoped_lock lock(seen().mutex);
  seen().is_watched = false;
  seen().total_s = 0;
}

double StandstillWatch::total_s() noexcept {
  const std::scoped_lock lock(seen().mutex);
  return seen().total_s + seen().since_last_look_s();
}

}  // namespace fourfold
