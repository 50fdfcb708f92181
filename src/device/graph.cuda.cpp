// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda_check.hpp"
#include "native_stream.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/graph.hpp>

#include <tuple>

namespace fourfold::device {
namespace {

NativeHandle owned(cudaGraph_t graph) {
  return {graph, [](void* its) { std::ignore = cudaGraphDestroy(static_cast<cudaGraph_t>(its)); }};
}

/// Has `enqueue` recorded. Threads of the device, and other ranks', may do what they like
/// meanwhile.
NativeHandle record(StreamRef stream, const std::function<void()>& enqueue) {
  check_cuda(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    std::ignore = cudaStreamEndCapture(native(stream), &graph);
    std::ignore = owned(graph);
    std::ignore = cudaGetLastError();
    throw;
  }
  const cudaError_t result = cudaStreamEndCapture(native(stream), &graph);
  NativeHandle recorded = owned(graph);
  check_cuda(result, "cudaStreamEndCapture");
  return recorded;
}

}  // namespace

Graph Graph::capture(StreamRef stream, const std::function<void()>& enqueue) {
  FOURFOLD_EXPECT(stream != StreamRef{});
  bind_thread();
  const NativeHandle recorded = record(stream, enqueue);
  cudaGraphExec_t executable = nullptr;
  check_cuda(cudaGraphInstantiate(&executable, static_cast<cudaGraph_t>(recorded.get()), 0),
             "cudaGraphInstantiate");
  Graph graph;
  graph.executable_ = {executable, [](void* its) {
                         std::ignore = cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(its));
                       }};
  return graph;
}

void Graph::launch(StreamRef stream) const {
  FOURFOLD_EXPECT(executable_ != nullptr);
  bind_thread();
  check_cuda(cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable_.get()), native(stream)),
             "cudaGraphLaunch");
  finish_if_default(stream);
}

}  // namespace fourfold::device
