// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda_check.hpp"
#include "native_stream.hpp"

#include <fourfold/device/stream.hpp>

#include <exception>
#include <mutex>
#include <tuple>
#include <utility>

namespace fourfold::device {
namespace {

/// What work on the host has thrown that one thread has enqueued, until that thread waits for a
/// stream: the work itself runs in a thread of the driver, through which no exception may pass. Not
/// by stream, as who waits for another stream, which waits for that one, is to be told too.
class HostFailure {
 public:
  void note(std::exception_ptr failure) {
    const std::scoped_lock lock(mutex_);
    first_ = first_ ? first_ : std::move(failure);
  }
  void rethrow() {
    std::exception_ptr failure;
    {
      const std::scoped_lock lock(mutex_);
      failure = std::exchange(first_, nullptr);
    }
    if (failure) {
      std::rethrow_exception(failure);
    }
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

/// The calling thread's; its work may outlive it.
const std::shared_ptr<HostFailure>& host_failure() {
  thread_local const auto failure = std::make_shared<HostFailure>();
  return failure;
}

struct HostWork {
  std::function<void()> run;
  std::shared_ptr<HostFailure> failure;
};

void run_and_forget(void* data) {
  const std::unique_ptr<HostWork> work(static_cast<HostWork*>(data));
  try {
    work->run();
  } catch (...) {
    work->failure->note(std::current_exception());
  }
}

}  // namespace

void StreamRef::synchronize() const {
  bind_thread();
  check_cuda(cudaStreamSynchronize(device::native(*this)), "cudaStreamSynchronize");
  host_failure()->rethrow();
}

void run_on_host(const std::function<void()>& work, StreamRef stream) {
  bind_thread();
  refuse_in_graph(stream, "cudaLaunchHostFunc");
  auto owned = std::make_unique<HostWork>(HostWork{work, host_failure()});
  check_cuda(cudaLaunchHostFunc(native(stream), run_and_forget, owned.get()), "cudaLaunchHostFunc");
  std::ignore = owned.release();
  finish_if_default(stream);
}

struct Stream::Impl {
  StreamPriority priority = StreamPriority::normal;
  cudaStream_t stream = nullptr;
};

Stream::Stream(StreamPriority priority) : impl_(std::make_unique<Impl>()) {
  impl_->priority = priority;
}
Stream::~Stream() {
  if (impl_ && impl_->stream != nullptr) {
    std::ignore = cudaStreamDestroy(impl_->stream);
  }
}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

StreamRef Stream::ref() const {
  if (impl_->stream == nullptr) {
    bind_thread();
    int least = 0;
    int greatest = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest),
               "cudaDeviceGetStreamPriorityRange");
    const int priority = impl_->priority == StreamPriority::high ? greatest : least;
    check_cuda(cudaStreamCreateWithPriority(&impl_->stream, cudaStreamNonBlocking, priority),
               "cudaStreamCreateWithPriority");
  }
  return StreamRef(impl_->stream);
}

struct Event::Impl {
  cudaEvent_t event = nullptr;  ///< made by the first record()
};

Event::Event() : impl_(std::make_unique<Impl>()) {}
Event::~Event() {
  if (impl_ && impl_->event != nullptr) {
    std::ignore = cudaEventDestroy(impl_->event);
  }
}
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

void Event::record(StreamRef stream) {
  bind_thread();
  if (impl_->event == nullptr) {
    check_cuda(cudaEventCreateWithFlags(&impl_->event, cudaEventDisableTiming),
               "cudaEventCreateWithFlags");
  }
  check_cuda(cudaEventRecord(impl_->event, native(stream)), "cudaEventRecord");
  finish_if_default(stream);
}

void Event::wait(StreamRef stream) const {
  if (impl_->event == nullptr) {
    return;
  }
  bind_thread();
  check_cuda(cudaStreamWaitEvent(native(stream), impl_->event, 0), "cudaStreamWaitEvent");
  finish_if_default(stream);
}

bool Event::has_happened() const {
  if (impl_->event == nullptr) {
    return true;
  }
  bind_thread();
  return is_ready(cudaEventQuery(impl_->event), "cudaEventQuery");
}

}  // namespace fourfold::device
