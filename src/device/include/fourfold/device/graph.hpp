// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>

#include <functional>

namespace fourfold::device {

/// Work that was recorded once and is enqueued as a whole, at the price of one launch. Move-only.
/// Its end, or another in its place, only when what launch() has enqueued is done.
class Graph {
 public:
  /// Nothing: to be assigned to.
  Graph() = default;

  /// Records what `enqueue` puts on `stream`, and on streams that wait there for an event and are
  /// waited for again; none of it happens. Blocks the host for about as long as enqueuing does.
  ///
  /// What is recorded has its arguments by value, and names memory that has to stay where it is.
  /// `enqueue` takes and gives back no memory, uses no stream for the first time, waits for no
  /// device, asks no event that it has recorded, waits for none that it has not, and leaves the
  /// default stream and the host's work (run_on_host) alone: other threads may do all of that
  /// meanwhile.
  /// @pre device::has_own_memory; `stream` is not the default stream
  /// @throws what `enqueue` throws; SystemError (internal) with the call that cannot be recorded.
  ///   `stream` is as it was
  static Graph capture(StreamRef stream, const std::function<void()>& enqueue);

  /// Enqueues it, ordered on `stream`. @pre it was captured
  void launch(StreamRef stream) const;

  explicit operator bool() const noexcept { return executable_ != nullptr; }

 private:
  NativeHandle executable_;
};

}  // namespace fourfold::device
