// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda_check.hpp"
#include "native_stream.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/base/contract.hpp>
#include <fourfold/device/timed_event.hpp>

#include <limits>
#include <tuple>
#include <utility>

namespace fourfold::device {
namespace {

double elapsed_ms(cudaEvent_t earlier, cudaEvent_t later) {
  float result_ms = 0;
  check_cuda(cudaEventElapsedTime(&result_ms, earlier, later), "cudaEventElapsedTime");
  return result_ms;
}

}  // namespace

struct TimedEvent::Impl {
  cudaEvent_t event = nullptr;  ///< made by the first record()

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (event != nullptr) {
      std::ignore = cudaEventDestroy(event);
    }
  }

  void record(StreamRef stream) {
    bind_thread();
    if (event == nullptr) {
      check_cuda(cudaEventCreateWithFlags(&event, cudaEventDefault), "cudaEventCreateWithFlags");
    }
    check_cuda(cudaEventRecord(event, native(stream)), "cudaEventRecord");
    finish_if_default(stream);
  }
};

/// Events know only the time between each other: one of them is laid beside the host's clock.
struct StreamClock::Impl {
  TimedEvent::Impl reference;
  double reference_s = 0;
  TimedEvent::Impl next;  ///< of renew(), until somebody asks
  bool is_renewed = false;

  void resolve() {
    if (is_renewed) {
      check_cuda(cudaEventSynchronize(next.event), "cudaEventSynchronize");
      reference_s += elapsed_ms(reference.event, next.event) * 1e-3;
      std::swap(reference.event, next.event);
      is_renewed = false;
    }
  }
};

TimedEvent::TimedEvent() : impl_(std::make_unique<Impl>()) {}
TimedEvent::~TimedEvent() = default;
TimedEvent::TimedEvent(TimedEvent&&) noexcept = default;
TimedEvent& TimedEvent::operator=(TimedEvent&&) noexcept = default;
void TimedEvent::record(StreamRef stream) {
  impl_->record(stream);
}

bool TimedEvent::has_happened() const {
  FOURFOLD_EXPECT(impl_->event != nullptr);
  return is_ready(cudaEventQuery(impl_->event), "cudaEventQuery");
}

void TimedEvent::synchronize() const {
  FOURFOLD_EXPECT(impl_->event != nullptr);
  check_cuda(cudaEventSynchronize(impl_->event), "cudaEventSynchronize");
}

double TimedEvent::us_since(const TimedEvent& earlier) const {
  FOURFOLD_EXPECT(impl_->event != nullptr && earlier.impl_->event != nullptr);
  return elapsed_ms(earlier.impl_->event, impl_->event) * 1e3;
}

StreamClock::StreamClock(StreamRef stream) : impl_(std::make_unique<Impl>()) {
  constexpr int looks = 5;  // of which the one counts in which the host was interrupted least
  stream.synchronize();
  double shortest_s = std::numeric_limits<double>::infinity();
  for (int look = 0; look < looks; ++look) {
    TimedEvent::Impl tried;
    const double before_s = steady_time_s();
    tried.record(stream);
    check_cuda(cudaEventSynchronize(tried.event), "cudaEventSynchronize");
    const double took_s = steady_time_s() - before_s;
    if (took_s < shortest_s) {
      shortest_s = took_s;
      impl_->reference_s = before_s + took_s / 2;  // off by microseconds
      std::swap(impl_->reference.event, tried.event);
    }
  }
}
StreamClock::~StreamClock() = default;
StreamClock::StreamClock(StreamClock&&) noexcept = default;
StreamClock& StreamClock::operator=(StreamClock&&) noexcept = default;

void StreamClock::renew(StreamRef stream) {
  impl_->resolve();
  impl_->next.record(stream);
  impl_->is_renewed = true;
}

double StreamClock::time_s(const TimedEvent& event) const {
  impl_->resolve();
  event.synchronize();
  const double since_ms = elapsed_ms(impl_->reference.event, event.impl_->event);
  return impl_->reference_s + since_ms * 1e-3;
}

}  // namespace fourfold::device
