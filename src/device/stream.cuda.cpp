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

using HostWork = std::function<void()>;

void run_and_forget(void* data) {
  const std::unique_ptr<HostWork> work(static_cast<HostWork*>(data));
  (*work)();
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
  auto owned = std::make_unique<HostWork>([work, failure = host_failure()] {
    try {
      work();
    } catch (...) {
      failure->note(std::current_exception());
    }
  });
  check_cuda(cudaLaunchHostFunc(native(stream), run_and_forget, owned.get()), "cudaLaunchHostFunc");
  std::ignore = owned.release();
  finish_if_default(stream);
}

StreamRef Stream::ref() const {
  if (stream_ == nullptr) {
    bind_thread();
    int least = 0;
    int greatest = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest),
               "cudaDeviceGetStreamPriorityRange");
    cudaStream_t made = nullptr;
    check_cuda(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking,
                                            priority_ == StreamPriority::high ? greatest : least),
               "cudaStreamCreateWithPriority");
    stream_ = {made, [](void* stream) {
                 std::ignore = cudaStreamDestroy(static_cast<cudaStream_t>(stream));
               }};
  }
  return StreamRef(stream_.get());
}

void Event::record(StreamRef stream) {
  record_event(event_, cudaEventDisableTiming, stream);
}

void Event::wait(StreamRef stream) const {
  if (event_ == nullptr) {
    return;
  }
  bind_thread();
  check_cuda(cudaStreamWaitEvent(native(stream), native_event(event_), 0), "cudaStreamWaitEvent");
  finish_if_default(stream);
}

bool Event::has_happened() const {
  if (event_ == nullptr) {
    return true;
  }
  bind_thread();
  return is_ready(cudaEventQuery(native_event(event_)), "cudaEventQuery");
}

}  // namespace fourfold::device
