// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Work on a host stream is done when enqueuing returns: the host's clock is the stream's.
#include <fourfold/base/clock.hpp>
#include <fourfold/device/timed_event.hpp>

namespace fourfold::device {

struct TimedEvent::Impl {
  double time_s = 0;
};
struct StreamClock::Impl {};

TimedEvent::TimedEvent() : impl_(std::make_unique<Impl>()) {}
TimedEvent::~TimedEvent() = default;
TimedEvent::TimedEvent(TimedEvent&&) noexcept = default;
TimedEvent& TimedEvent::operator=(TimedEvent&&) noexcept = default;
void TimedEvent::record(StreamRef /*stream*/) {
  impl_->time_s = steady_time_s();
}

bool TimedEvent::has_happened() const {
  return true;
}

void TimedEvent::synchronize() const {}

double TimedEvent::us_since(const TimedEvent& earlier) const {
  return 1e6 * (impl_->time_s - earlier.impl_->time_s);
}

StreamClock::StreamClock(StreamRef /*stream*/) {}
StreamClock::~StreamClock() = default;
StreamClock::StreamClock(StreamClock&&) noexcept = default;
StreamClock& StreamClock::operator=(StreamClock&&) noexcept = default;
void StreamClock::renew(StreamRef /*stream*/) {}
double StreamClock::time_s(const TimedEvent& event) const {
  return event.impl_->time_s;
}

}  // namespace fourfold::device
