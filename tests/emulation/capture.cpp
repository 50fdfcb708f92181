// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "capture.hpp"

#include "call_result.hpp"

#include <algorithm>
#include <utility>

using namespace fourfold::emulated;

struct CUgraph_st {
  std::vector<Item> items;
};
struct CUgraphExec_st {
  std::vector<Item> items;
};

namespace fourfold::emulated {
namespace {

thread_local std::shared_ptr<Capture> the_capture;

void merge(Progress& into, const Progress& other) {
  for (const auto& [queue, count] : other) {
    into[queue] = std::max(into[queue], count);
  }
}

}  // namespace

Capture::Capture(std::shared_ptr<Queue> origin) : joined_{std::move(origin)} {}

void Capture::add(const Queue* queue, Item item) {
  is_broken_ = is_broken_ || item.kind == Item::Kind::meeting;  // which cannot be done twice
  ++after_[queue][queue];
  items_.push_back(std::move(item));
}

void Capture::join(const std::shared_ptr<Queue>& queue, const Progress& marked) {
  if (queue->capture == nullptr) {
    queue->capture = the_capture;
    joined_.push_back(queue);
  }
  merge(after_[queue.get()], marked);
}

cudaError_t Capture::end() {
  const Progress at_end = after_[origin()];
  bool all_joined = true;
  for (const std::shared_ptr<Queue>& queue : joined_) {
    queue->capture = nullptr;
    const std::size_t added = after_[queue.get()][queue.get()];
    const auto reached = at_end.find(queue.get());
    all_joined =
        all_joined && (added == 0 || (reached != at_end.end() && reached->second == added));
  }
  return is_broken_    ? cudaErrorStreamCaptureInvalidated
         : !all_joined ? cudaErrorStreamCaptureUnjoined
                       : cudaSuccess;
}

const std::shared_ptr<Capture>& ongoing_capture() {
  return the_capture;
}

cudaError_t refuse_in_capture() {
  if (the_capture == nullptr) {
    return cudaSuccess;
  }
  the_capture->break_off();
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t refuse_on_capturing(const std::shared_ptr<Queue>& queue) {
  return queue != nullptr && queue->capture != nullptr ? refuse_in_capture() : cudaSuccess;
}

std::shared_ptr<Queue> queue_for_work(void* stream, cudaError_t& why_not) {
  why_not = cudaSuccess;
  if (stream == nullptr && the_capture != nullptr) {
    the_capture->break_off();
    why_not = cudaErrorStreamCaptureImplicit;
    return nullptr;
  }
  auto queue = queue_of(stream);
  why_not = queue == nullptr ? cudaErrorInvalidResourceHandle : cudaSuccess;
  return queue;
}

}  // namespace fourfold::emulated

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  FAIL_AS_PLANNED("cudaStreamBeginCapture")
  const auto queue = queue_of(stream);
  if (stream == nullptr || the_capture != nullptr) {
    return note(cudaErrorStreamCaptureUnsupported);
  }
  if (queue == nullptr || mode != cudaStreamCaptureModeThreadLocal) {
    return note(cudaErrorInvalidValue);
  }
  the_capture = std::make_shared<Capture>(queue);
  queue->capture = the_capture;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  FAIL_AS_PLANNED("cudaStreamEndCapture")
  *graph = nullptr;
  if (the_capture == nullptr || the_capture->origin() != queue_of(stream).get()) {
    return note(cudaErrorStreamCaptureUnmatched);
  }
  const std::shared_ptr<Capture> capture = std::move(the_capture);
  the_capture = nullptr;
  const cudaError_t result = capture->end();
  if (result == cudaSuccess) {
    *graph = new CUgraph_st{capture->items()};
  }
  return note(result);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const auto queue = queue_of(stream);
  *status = queue != nullptr && queue->capture != nullptr ? cudaStreamCaptureStatusActive
                                                          : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  FAIL_AS_PLANNED("cudaGraphInstantiate")
  FAIL_IN_CAPTURE()
  *executable = new CUgraphExec_st{graph->items};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  FAIL_AS_PLANNED("cudaGraphLaunch")
  cudaError_t why_not = cudaSuccess;
  const auto queue = queue_for_work(stream, why_not);
  if (queue == nullptr) {
    return note(why_not);
  }
  for (const Item& item : executable->items) {
    enqueue(queue, item);
  }
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
