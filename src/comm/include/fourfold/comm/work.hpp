// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>
#include <fourfold/device/timed_event.hpp>

#include <memory>
#include <utility>

namespace fourfold::comm {

/// A communication operation that has been enqueued. Move-only.
///
/// Another *stream* waits for it: wait(stream) orders all later work on `stream` after the
/// operation. On a host transport that blocks the calling thread (and makes progress for every
/// operation in flight); on NCCL it only records a dependency between streams and never stops the
/// host. The buffers of the operation must stay untouched until a stream that waited for it uses
/// them.
class Work {
 public:
  /// What a transport implements. wait() is called at most once per Work.
  class Operation {
   public:
    virtual ~Operation() = default;
    virtual void wait(device::StreamRef stream) = 0;
    /// Whether it has finished; makes progress. Never blocks.
    virtual bool test() = 0;
    virtual bool mark_end(device::TimedEvent& /*end*/) { return false; }
  };

  /// An operation that is already done.
  Work() = default;
  explicit Work(std::unique_ptr<Operation> operation) : operation_(std::move(operation)) {}
  Work(Work&&) noexcept = default;
  /// Waits for the old operation first.
  Work& operator=(Work&& other) noexcept;
  /// An operation that nobody waited for is waited for here, except while an exception unwinds
  /// (then the process is about to abort).
  ~Work();

  void wait(device::StreamRef stream);
  bool test();
  /// To call right after the operation's posting: makes `end` the moment at which it ends, where
  /// it is in the queue of a device already. False where it is not, as on host transports: it ends
  /// when it is seen to have.
  bool mark_end(device::TimedEvent& end);

 private:
  std::unique_ptr<Operation> operation_;
};

}  // namespace fourfold::comm
