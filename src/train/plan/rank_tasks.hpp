// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/contract.hpp>
#include <fourfold/comm/thread_group.hpp>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace fourfold::train {

/// Ranks that are threads of this process and keep what they have between tasks: an object of
/// `Rank` each, made, used and destroyed by its own thread.
template <class Rank>
class RankTasks {
 public:
  using Make = std::function<Rank(comm::Communicator& world)>;
  using Task = std::function<void(Rank& rank)>;

  /// Starts the threads; `make` makes each rank's object. Does not wait for them.
  RankTasks(int ranks, Make make)
      : ranks_(ranks), driver_([this, make = std::move(make)] { drive(make); }) {}
  ~RankTasks() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    driver_.join();
  }
  RankTasks(const RankTasks&) = delete;
  RankTasks& operator=(const RankTasks&) = delete;

  /// All ranks do the task; waits for them.
  /// @throws what the first failing rank threw, after all threads have ended: no task follows then
  void run(const Task& task) {
    std::unique_lock lock(mutex_);
    task_ = &task;
    busy_ = ranks_;
    ++tasks_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return busy_ == 0 || ended_; });
    if (failure_) {
      std::rethrow_exception(failure_);
    }
    FOURFOLD_ASSERT(!ended_);
  }

 private:
  void drive(const Make& make) {
    std::exception_ptr failure;
    try {
      comm::run_device_ranks(ranks_, [&](comm::Communicator& world) { work(world, make); });
    } catch (...) {  // thrown on by run()
      failure = std::current_exception();
    }
    const std::scoped_lock lock(mutex_);
    failure_ = failure;
    ended_ = true;
    changed_.notify_all();
  }

  void work(comm::Communicator& world, const Make& make) {
    try {
      Rank rank = make(world);
      for (std::int64_t done = 0; const Task* const task = next(done); ++done) {
        (*task)(rank);
        finish();
      }
    } catch (...) {  // the others wait for no task of a group that has failed
      const std::scoped_lock lock(mutex_);
      over_ = true;
      changed_.notify_all();
      throw;
    }
  }

  /// The task after `done` others; nullptr: there will be none.
  const Task* next(std::int64_t done) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return over_ || tasks_ > done; });
    return over_ ? nullptr : task_;
  }

  void finish() {
    const std::scoped_lock lock(mutex_);
    if (--busy_ == 0) {
      changed_.notify_all();
    }
  }

  int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const Task* task_ = nullptr;
  std::int64_t tasks_ = 0;
  int busy_ = 0;
  bool over_ = false;   ///< no task follows
  bool ended_ = false;  ///< so have all threads
  std::exception_ptr failure_;
  std::thread driver_;  ///< last: it uses the others
};

}  // namespace fourfold::train
