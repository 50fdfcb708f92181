// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Work on a host stream is done when enqueuing returns, so marks and waits have nothing to do.
#include <fourfold/base/clock.hpp>
#include <fourfold/base/contract.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/device/graph.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/device/timed_event.hpp>

namespace fourfold::device {

void StreamRef::synchronize() const {}

void run_on_host(const std::function<void()>& work, StreamRef /*stream*/) {
  work();
}

StreamRef Stream::ref() const {
  return StreamRef{};
}

void Event::record(StreamRef /*stream*/) {}
void Event::wait(StreamRef /*stream*/) const {}
bool Event::has_happened() const {
  return true;
}

Graph Graph::capture(StreamRef /*stream*/, const std::function<void()>& /*enqueue*/) {
  FOURFOLD_EXPECT(has_own_memory);
  return {};
}

void Graph::launch(StreamRef /*stream*/) const {
  FOURFOLD_EXPECT(executable_ != nullptr);
}

// The host's clock is the stream's.

void TimedEvent::record(StreamRef /*stream*/) {
  time_s_ = steady_time_s();
}

bool TimedEvent::has_happened() const {
  return true;
}

void TimedEvent::synchronize() const {}

double TimedEvent::us_since(const TimedEvent& earlier) const {
  return 1e6 * (time_s_ - earlier.time_s_);
}

StreamClock::StreamClock(StreamRef /*stream*/) {}
void StreamClock::renew(StreamRef /*stream*/) {}
double StreamClock::time_s(const TimedEvent& event) const {
  return event.time_s_;
}

}  // namespace fourfold::device
