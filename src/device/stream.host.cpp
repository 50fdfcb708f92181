// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Work on a host stream is done when enqueuing returns, so marks and waits have nothing to do.
#include <fourfold/device/stream.hpp>

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

}  // namespace fourfold::device
