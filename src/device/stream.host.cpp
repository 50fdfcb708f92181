// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Work on a host stream is done when enqueuing returns, so marks and waits have nothing to do.
#include <fourfold/base/clock.hpp>
#include <fourfold/base/contract.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/device/graph.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/device/timed_event.hpp>

#include <utility>

namespace fourfold::device {

struct Stream::Impl {};
struct Event::Impl {};

void StreamRef::synchronize() const {}

void run_on_host(const std::function<void()>& work, StreamRef /*stream*/) {
  work();
}

Stream::Stream(StreamPriority /*priority*/) {}
Stream::~Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
StreamRef Stream::ref() const {
  return StreamRef{};
}

Event::Event() = default;
Event::~Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;
void Event::record(StreamRef /*stream*/) {}
void Event::wait(StreamRef /*stream*/) const {}
bool Event::has_happened() const {
  return true;
}

// Work on a host stream is done when it is enqueued: there is nothing to record.

struct Graph::Impl {};

Graph::Graph() = default;
Graph::Graph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

Graph Graph::capture(StreamRef /*stream*/, const std::function<void()>& /*enqueue*/) {
  FOURFOLD_EXPECT(has_own_memory);
  return {};
}

void Graph::launch(StreamRef /*stream*/) const {
  FOURFOLD_EXPECT(impl_ != nullptr);
}

// Work on a host stream is done when enqueuing returns: the host's clock is the stream's.

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
