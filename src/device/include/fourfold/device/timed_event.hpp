// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>

namespace fourfold::device {

/// A point in a stream whose time can be read afterwards, beside that of another one or on the
/// host's clock (StreamClock). Move-only; may be recorded again.
class TimedEvent {
 public:
  /// Marks the work enqueued on `stream` so far. Does not block the host.
  void record(StreamRef stream);
  /// Whether the marked work is done. Does not block the host. @pre it was recorded
  bool has_happened() const;
  /// Blocks the host until the marked work is done. @pre it was recorded
  void synchronize() const;
  /// Microseconds on the device since `earlier`. Does not block the host. @pre both have happened
  double us_since(const TimedEvent& earlier) const;

 private:
  friend class StreamClock;

  NativeHandle event_;                  ///< made by the first record() of a device
  [[maybe_unused]] double time_s_ = 0;  ///< on a host build
};

/// When the events of a device happened, in seconds of steady_time_s().
class StreamClock {
 public:
  /// Blocks the host until the work on `stream` is done, so that device and host agree on "now".
  explicit StreamClock(StreamRef stream);

  /// Counts from where `stream` is now. Events are counted in f32 milliseconds, which far from
  /// where they are counted from are coarse: 8 us after a minute. Does not block the host.
  void renew(StreamRef stream);

  /// Blocks the host until the event has happened. @pre it was recorded since this clock was made
  double time_s(const TimedEvent& event) const;

 private:
  // Events of a device know only the time between each other: one is laid beside the host's clock.
  TimedEvent reference_;
  [[maybe_unused]] double reference_s_ = 0;
  TimedEvent next_;  ///< of the last renew()
};

}  // namespace fourfold::device
