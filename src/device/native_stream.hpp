// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda_check.hpp"

#include <fourfold/device/stream.hpp>

#include <cuda_runtime_api.h>

namespace fourfold::device {

inline cudaStream_t native(StreamRef stream) noexcept {
  return static_cast<cudaStream_t>(stream.native());
}

/// The default stream's work is done when the call that enqueues it returns.
inline void finish_if_default(StreamRef stream) {
  if (stream == StreamRef{}) {
    stream.synchronize();
  }
}

/// For what CUDA records and no graph of ours may have, as it could be launched but once.
/// @throws SystemError (internal) when `stream` is being captured
inline void refuse_in_graph(StreamRef stream, const char* call) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(native(stream), &status), "cudaStreamIsCapturing");
  check_cuda(
      status == cudaStreamCaptureStatusNone ? cudaSuccess : cudaErrorStreamCaptureUnsupported,
      call);
}

}  // namespace fourfold::device
