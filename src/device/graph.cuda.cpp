// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda_check.hpp"
#include "native_stream.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/graph.hpp>

#include <tuple>
#include <utility>

namespace fourfold::device {
namespace {

/// What was recorded, until it can be launched.
class Recorded {
 public:
  Recorded() = default;
  ~Recorded() {
    if (graph_ != nullptr) {
      std::ignore = cudaGraphDestroy(graph_);
    }
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  cudaGraph_t* place() noexcept { return &graph_; }
  cudaGraph_t get() const noexcept { return graph_; }

 private:
  cudaGraph_t graph_ = nullptr;
};

/// Has `enqueue` recorded. Threads of the device, and other ranks', may do what they like
/// meanwhile.
void record(StreamRef stream, const std::function<void()>& enqueue, Recorded& recorded) {
  check_cuda(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture");
  try {
    enqueue();
  } catch (...) {
    std::ignore = cudaStreamEndCapture(native(stream), recorded.place());
    std::ignore = cudaGetLastError();
    throw;
  }
  check_cuda(cudaStreamEndCapture(native(stream), recorded.place()), "cudaStreamEndCapture");
}

}  // namespace

struct Graph::Impl {
  cudaGraphExec_t executable = nullptr;

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (executable != nullptr) {
      std::ignore = cudaGraphExecDestroy(executable);
    }
  }
};

Graph::Graph() = default;
Graph::Graph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

Graph Graph::capture(StreamRef stream, const std::function<void()>& enqueue) {
  FOURFOLD_EXPECT(stream != StreamRef{});
  bind_thread();
  Recorded recorded;
  record(stream, enqueue, recorded);
  auto impl = std::make_unique<Impl>();
  check_cuda(cudaGraphInstantiate(&impl->executable, recorded.get(), 0), "cudaGraphInstantiate");
  return Graph(std::move(impl));
}

void Graph::launch(StreamRef stream) const {
  FOURFOLD_EXPECT(impl_ != nullptr);
  bind_thread();
  check_cuda(cudaGraphLaunch(impl_->executable, native(stream)), "cudaGraphLaunch");
  finish_if_default(stream);
}

}  // namespace fourfold::device
