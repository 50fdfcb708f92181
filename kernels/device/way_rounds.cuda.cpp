// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "way_rounds.cuda.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>

#include <fmt/format.h>

namespace fourfold::kernels {
namespace {

void check(cudaError_t result, const char* call) {
  if (result != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // it is told here, and not again by the next call
    throw SystemError(ExitCode::internal,
                      fmt::format("{} failed while products were measured ({}: {}) leave "
                                  "train.product_choices out, and report it",
                                  call, cudaGetErrorName(result), cudaGetErrorString(result)));
  }
}

cudaStream_t native(device::StreamRef stream) {
  return static_cast<cudaStream_t>(stream.native());
}

}  // namespace

WayRounds::WayRounds(device::StreamRef stream) : stream_(stream) {
  mark();
}

void WayRounds::mark() {
  cudaEvent_t made = nullptr;
  check(cudaEventCreateWithFlags(&made, cudaEventDefault), "cudaEventCreateWithFlags");
  events_.emplace_back(made);
  check(cudaEventRecord(made, native(stream_)), "cudaEventRecord");
}

bool WayRounds::is_done() const {
  const cudaError_t result = cudaEventQuery(events_.back().get());
  if (result == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  check(result, "cudaEventQuery");
  return true;
}

void WayRounds::wait() const {
  check(cudaEventSynchronize(events_.back().get()), "cudaEventSynchronize");
}

std::vector<std::vector<double>> WayRounds::us(std::size_t ways) const {
  FOURFOLD_EXPECT(events_.size() == 1 + rounds * ways);
  std::vector<std::vector<double>> result(ways);
  for (std::size_t i = ways; i < rounds * ways; ++i) {
    float elapsed_ms = 0;
    check(cudaEventElapsedTime(&elapsed_ms, events_[i].get(), events_[i + 1].get()),
          "cudaEventElapsedTime");
    result[i % ways].push_back(static_cast<double>(elapsed_ms) * 1e3);
  }
  return result;
}

bool is_captured(device::StreamRef stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(native(stream), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace fourfold::kernels
