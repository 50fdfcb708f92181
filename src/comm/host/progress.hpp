// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What is in flight at one rank: operations as state machines, and the loop that advances them.
#pragma once

#include <fourfold/comm/flight_recorder.hpp>
#include <fourfold/comm/work.hpp>
#include <fourfold/device/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::comm {

/// An operation as a state machine over messages: does what can be done without waiting, and
/// returns whether the operation is finished.
using CollectiveTask = std::function<bool()>;

/// One whose state is a T: `bool T::advance()`.
template <class T, class... Arguments>
CollectiveTask make_task(Arguments&&... arguments) {
  return [state = std::make_shared<T>(std::forward<Arguments>(arguments)...)] {
    return state->advance();
  };
}

/// Memory for pieces that wait to be reduced. Blocks are kept and used again, so a training step
/// allocates none after its first time.
class ScratchPool {
 public:
  class Lease {
   public:
    Lease() = default;
    Lease(ScratchPool& pool, device::Buffer buffer) : pool_(&pool), buffer_(std::move(buffer)) {}
    Lease(Lease&& other) noexcept = default;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease();
    std::byte* data() const noexcept { return static_cast<std::byte*>(buffer_.data()); }

   private:
    ScratchPool* pool_ = nullptr;
    device::Buffer buffer_;
  };

  /// At least `bytes`, contents undefined.
  Lease take(std::size_t bytes);

 private:
  std::vector<device::Buffer> free_;
};

/// All operations in flight of one rank, over all its communicators. One thread.
class Progress {
 public:
  virtual ~Progress() = default;
  Progress() = default;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Starts `task`; `what` names it in errors, `number` is its call in the flight recorder.
  Work launch(CollectiveTask task, std::string what, std::uint64_t number);
  /// Advances every operation in flight until `task` is finished.
  void run(const CollectiveTask& task, const std::string& what);
  ScratchPool& scratch() noexcept { return scratch_; }
  FlightRecorder& recorder() noexcept { return recorder_; }

 protected:
  /// A number that changes when a transfer of this rank may have ended.
  virtual std::uint64_t changes() = 0;
  /// Waits a while for changes() to differ from `seen`; may return early.
  /// @throws SystemError when a peer has failed, naming `what` this rank waits for
  virtual void pause(std::uint64_t seen, const std::string& what) = 0;

 private:
  class Pending;
  void advance_others(const CollectiveTask* except);

  std::vector<Pending*> pending_;
  std::exception_ptr failure_;  ///< of the first operation that failed; ends all later ones
  ScratchPool scratch_;
  FlightRecorder recorder_;
};

}  // namespace fourfold::comm
