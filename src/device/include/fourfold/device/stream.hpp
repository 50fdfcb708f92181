// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Queues of device work. Everything the trainer does is enqueued on a stream; ordering between
/// streams is by events. On a host build a stream runs each operation at once in the calling
/// thread, so an event that was recorded has already happened; code is written as if it had not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace fourfold::device {

/// Owns what a runtime or the system has given a handle or an address of, and knows how that ends.
using NativeHandle = std::unique_ptr<void, std::function<void(void* native)>>;

/// A stream that somebody else owns; a value, passed everywhere. Default: the default stream, whose
/// work is done when the call that enqueues it returns. It is for set-up and tests: it waits for no
/// other stream, and no step may use it.
class StreamRef {
 public:
  StreamRef() = default;
  explicit StreamRef(void* native) noexcept : native_(native) {}
  /// cudaStream_t on a CUDA build, nullptr on a host build.
  void* native() const noexcept { return native_; }
  /// Blocks the host until all work enqueued so far is done. In a training step that is where the
  /// host wants to read what came out, and nowhere else.
  /// @throws what work has thrown that the calling thread enqueued with run_on_host(), on this
  ///   stream or on another; SystemError when the device failed
  void synchronize() const;
  friend bool operator==(StreamRef, StreamRef) = default;

 private:
  void* native_ = nullptr;
};

/// The last thing that a call does which enqueues work.
inline void finish_if_default(StreamRef stream) {
  if (stream == StreamRef{}) {
    stream.synchronize();
  }
}

/// Enqueues work for the host, in host memory: it begins when all that was enqueued on `stream`
/// before is done, and what is enqueued after it waits for it. For what the host does inside a
/// step (state that is not in device memory). It must enqueue nothing itself, and free
/// no Buffer: a function that owns one frees it.
/// @throws what `work` throws: on a host build at once, on a device when the thread that has called
///   this waits for a stream after it. What other threads wait for tells them nothing of it: ranks
///   may be threads, and the failure is this one's.
void run_on_host(const std::function<void()>& work, StreamRef stream);

/// Which of the streams that have work a device prefers: communication goes before computation, as
/// somebody else waits for it.
enum class StreamPriority : std::uint8_t { normal, high };

/// Owns a stream. Move-only. Takes the device with its first use only, so that what is never run
/// needs none. Must be destroyed before the device runtime.
class Stream {
 public:
  explicit Stream(StreamPriority priority = StreamPriority::normal) : priority_(priority) {}

  StreamRef ref() const;
  operator StreamRef() const { return ref(); }  // NOLINT(google-explicit-constructor)

 private:
  [[maybe_unused]] StreamPriority priority_;
  mutable NativeHandle stream_;  ///< made when it is first used; never on a host build
};

/// A point in a stream that other streams can wait for. Move-only; may be recorded again.
class Event {
 public:
  /// Marks the work enqueued on `stream` so far.
  void record(StreamRef stream);
  /// Makes later work on `stream` wait for the mark; does not block the host. A never recorded
  /// event is no wait.
  void wait(StreamRef stream) const;
  /// Whether the marked work is done: that of a never recorded event is. Does not block the host;
  /// any thread may ask.
  bool has_happened() const;

 private:
  NativeHandle event_;  ///< made by the first record(); never on a host build
};

}  // namespace fourfold::device
