// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a process has on its way through NCCL, over all communicators, and a thread that watches
/// over it: NCCL itself neither says where it hangs nor ends when a peer is gone.
#pragma once

#include <fourfold/comm/flight_recorder.hpp>
#include <fourfold/device/stream.hpp>

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace fourfold::comm {

/// An operation on a stream, between two marks.
struct DeviceCall {
  device::Event begun;
  device::Event ended;
  std::uint64_t number = 0;  ///< in the flight recorder
  FlightRecord record = {};
  bool has_begun = false;  ///< as far as was seen
};

/// Calls whose events are used again: a training step makes none after its first time.
class SpareCalls {
 public:
  /// Comes back when nobody holds it any more. @param pool  that it comes back to
  static std::shared_ptr<DeviceCall> take(const std::shared_ptr<SpareCalls>& pool);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<DeviceCall>> spare_;
};

class NcclCalls {
 public:
  /// @param deadline_s  for communicators to be made, and for an operation to be enqueued
  NcclCalls(FlightRecorder& recorder, double deadline_s);
  /// @pre no communicator is left
  ~NcclCalls();
  NcclCalls(const NcclCalls&) = delete;
  NcclCalls& operator=(const NcclCalls&) = delete;

  FlightRecorder& recorder() noexcept { return *recorder_; }

  /// Held while the rank's own thread is in calls of NCCL, wait_ready() included: NCCL ends what it
  /// does in the background in whatever call comes next, and two threads in such calls at once may
  /// both give its memory back.
  [[nodiscard]] std::unique_lock<std::recursive_mutex> use() {
    return std::unique_lock(using_nccl_);
  }

  /// Waits for what a non-blocking communicator does in the background.
  /// @param result  of the call that began it, which may say ncclSuccess before it is done
  /// @param what  for errors
  /// @throws SystemError (node_fault) when it fails, (hang) when it takes longer than the deadline
  void wait_ready(ncclComm_t comm, ncclResult_t result, const std::string& what);

  /// Like check_nccl(), where `comm` is still sound. What fails because the communicator has failed
  /// before says nothing: then it is as if require_none_failed() had been called.
  void check(ncclComm_t comm, ncclResult_t result, const std::string& what);

  /// From here on errors of `comm` are looked for, until forget().
  void adopt(ncclComm_t comm, const std::string& name);
  void forget(ncclComm_t comm);

  /// Marks where an operation begins, and then where it ends. One thread.
  std::shared_ptr<DeviceCall> begin(std::size_t group, const Call& call, device::StreamRef stream);
  void end(const std::shared_ptr<DeviceCall>& call, device::StreamRef stream);

  /// @throws SystemError (node_fault) once a communicator has failed, after the watch of the run
  ///   had its time to say who is to blame
  void require_none_failed() const;
  bool has_failed() const noexcept { return has_failed_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Adopted {
    ncclComm_t comm = nullptr;
    std::string name;
  };

  void watch();  ///< the thread
  void look_at_calls();
  void look_for_errors();
  void note_failure(const std::string& text);
  /// Of `comm`; nothing when it is sound.
  static std::optional<ncclResult_t> error_of(ncclComm_t comm);
  Clock::duration since_failure() const;
  std::string failure() const;

  FlightRecorder* recorder_;
  std::chrono::duration<double> deadline_;
  std::recursive_mutex using_nccl_;
  std::mutex mutex_;  ///< of what follows
  std::vector<Adopted> adopted_;
  std::deque<std::shared_ptr<DeviceCall>> in_flight_;
  std::shared_ptr<SpareCalls> spare_ = std::make_shared<SpareCalls>();
  mutable std::mutex failure_mutex_;
  std::string failure_;
  Clock::time_point failed_;
  std::atomic<bool> has_failed_{false};
  std::atomic<bool> is_over_{false};
  std::thread watcher_;
};

}  // namespace fourfold::comm
