// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda_check.hpp"
#include "native_stream.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/base/contract.hpp>
#include <fourfold/device/timed_event.hpp>

#include <limits>
#include <utility>

namespace fourfold::device {
namespace {

double elapsed_ms(const NativeHandle& earlier, const NativeHandle& later) {
  float result_ms = 0;
  check_cuda(cudaEventElapsedTime(&result_ms, native_event(earlier), native_event(later)),
             "cudaEventElapsedTime");
  return result_ms;
}

}  // namespace

void TimedEvent::record(StreamRef stream) {
  record_event(event_, cudaEventDefault, stream);
}

bool TimedEvent::has_happened() const {
  FOURFOLD_EXPECT(event_ != nullptr);
  return is_ready(cudaEventQuery(native_event(event_)), "cudaEventQuery");
}

void TimedEvent::synchronize() const {
  FOURFOLD_EXPECT(event_ != nullptr);
  check_cuda(cudaEventSynchronize(native_event(event_)), "cudaEventSynchronize");
}

double TimedEvent::us_since(const TimedEvent& earlier) const {
  FOURFOLD_EXPECT(event_ != nullptr && earlier.event_ != nullptr);
  return elapsed_ms(earlier.event_, event_) * 1e3;
}

StreamClock::StreamClock(StreamRef stream) {
  constexpr int looks = 5;  // of which the one counts in which the host was interrupted least
  stream.synchronize();
  double shortest_s = std::numeric_limits<double>::infinity();
  for (int look = 0; look < looks; ++look) {
    TimedEvent tried;
    const double before_s = steady_time_s();
    tried.record(stream);
    tried.synchronize();
    const double took_s = steady_time_s() - before_s;
    if (took_s < shortest_s) {
      shortest_s = took_s;
      reference_s_ = before_s + took_s / 2;  // off by microseconds
      reference_ = std::move(tried);
    }
  }
}

void StreamClock::renew(StreamRef stream) {
  if (next_.event_ != nullptr) {
    reference_s_ = time_s(next_);
    std::swap(reference_, next_);
  }
  next_.record(stream);
}

double StreamClock::time_s(const TimedEvent& event) const {
  const TimedEvent* from = &reference_;
  double from_s = reference_s_;
  if (next_.event_ != nullptr) {
    next_.synchronize();
    from_s += elapsed_ms(reference_.event_, next_.event_) * 1e-3;
    from = &next_;
  }
  event.synchronize();
  return from_s + elapsed_ms(from->event_, event.event_) * 1e-3;
}

}  // namespace fourfold::device
