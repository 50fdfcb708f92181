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
#include <map>
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
  /// Memory for pieces that wait to be reduced: at least `bytes`, contents undefined. Blocks come
  /// back when nobody holds them any more, before this ends, and are used again: a training step
  /// allocates none after its first time.
  std::shared_ptr<std::byte> take_scratch(std::size_t bytes);
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
  std::multimap<std::size_t, device::Buffer> free_scratch_;  ///< by bytes
  FlightRecorder recorder_;
};

}  // namespace fourfold::comm
