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

// What the thread has seen so far. Whoever reads or writes it holds the mutex.
std::mutex mutex;
bool is_watched = false;
double shortest_s = 0;
double last_look_s = 0;
double seen_s = 0;

double since_last_look_s() noexcept {
  const double gap_s = steady_time_s() - last_look_s - between_looks_s;
  return is_watched && gap_s >= shortest_s ? gap_s : 0;
}

/// Notes for how long this thread itself was not let run.
void look(const std::stop_token& end) {
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!end.stop_requested()) {
    wake.wait_for(lock, end, std::chrono::duration<double>(between_looks_s), [] { return false; });
    seen_s += since_last_look_s();
    last_look_s = steady_time_s();
  }
}

}  // namespace

StandstillWatch::StandstillWatch(double least_s) {
  {
    const std::scoped_lock lock(mutex);
    FOURFOLD_EXPECT(!is_watched);
    is_watched = true;
    shortest_s = least_s;
    last_look_s = steady_time_s();
    seen_s = 0;
  }
  looking_ = std::jthread(look);
}

StandstillWatch::~StandstillWatch() {
  looking_.request_stop();
  looking_.join();
  const std::scoped_lock lock(mutex);
  is_watched = false;
  seen_s = 0;
}

double StandstillWatch::total_s() noexcept {
  const std::scoped_lock lock(mutex);
  return seen_s + since_last_look_s();
}

}  // namespace fourfold
