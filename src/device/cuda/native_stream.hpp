// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Streams as CUDA knows them.
#pragma once

#include "cuda_check.hpp"

#include <fourfold/device/stream.hpp>

#include <cuda_runtime_api.h>

namespace fourfold::device {

inline cudaStream_t native(StreamRef stream) noexcept {
  return static_cast<cudaStream_t>(stream.native());
}

/// Whether `stream` is being captured into a graph, where nothing may be made or asked.
inline bool is_captured(StreamRef stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(native(stream), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

/// For what CUDA records and no graph of ours may have, as it could be launched but once.
/// @throws SystemError (internal) when `stream` is being captured
inline void refuse_in_graph(StreamRef stream, const char* call) {
  check_cuda(is_captured(stream) ? cudaErrorStreamCaptureUnsupported : cudaSuccess, call);
}

}  // namespace fourfold::device
