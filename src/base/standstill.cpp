// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/standstill.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
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

}  // namespace

class StandstillWatch::Looking {
 public:
  Looking() : thread_([this] { look(); }) {}
  ~Looking() {
    {
      const std::scoped_lock lock(seen().mutex);
      ends_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  Looking(const Looking&) = delete;
  Looking& operator=(const Looking&) = delete;

 private:
  void look() {
    std::unique_lock lock(seen().mutex);
    while (!ends_) {
      wake_.wait_for(lock, std::chrono::duration<double>(between_looks_s));
      seen().total_s += seen().since_last_look_s();
      seen().last_look_s = steady_time_s();
    }
  }

  bool ends_ = false;
  std::condition_variable wake_;
  std::thread thread_;  ///< last: it uses the others
};

StandstillWatch::StandstillWatch(double least_s) {
  {
    const std::scoped_lock lock(seen().mutex);
    FOURFOLD_EXPECT(!seen().is_watched);
    seen().is_watched = true;
    seen().least_s = least_s;
    seen().last_look_s = steady_time_s();
    seen().total_s = 0;
  }
  looking_ = std::make_unique<Looking>();
}

StandstillWatch::~StandstillWatch() {
  looking_.reset();
  const std::scoped_lock lock(seen().mutex);
  seen().is_watched = false;
  seen().total_s = 0;
}

double StandstillWatch::total_s() noexcept {
  const std::scoped_lock lock(seen().mutex);
  return seen().total_s + seen().since_last_look_s();
}

}  // namespace fourfold
