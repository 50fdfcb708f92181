// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Streams and events as CUDA knows them.
#pragma once

#include "cuda_check.hpp"

#include <fourfold/device/stream.hpp>

#include <cuda_runtime_api.h>

#include <tuple>

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

inline cudaEvent_t native_event(const NativeHandle& event) noexcept {
  return static_cast<cudaEvent_t>(event.get());
}

/// Makes `event` if it is none yet. @param flags  of cudaEventCreateWithFlags()
inline void record_event(NativeHandle& event, unsigned flags, StreamRef stream) {
  bind_thread();
  if (event == nullptr) {
    cudaEvent_t made = nullptr;
    check_cuda(cudaEventCreateWithFlags(&made, flags), "cudaEventCreateWithFlags");
    event = {made,
             [](void* its) { std::ignore = cudaEventDestroy(static_cast<cudaEvent_t>(its)); }};
  }
  check_cuda(cudaEventRecord(native_event(event), native(stream)), "cudaEventRecord");
  finish_if_default(stream);
}

// Functions of the CUDA driver by their names. Linked, they would need libcuda.so.1 for a program
// to start at all, and where there is no driver the loader would say so, not we.

/// @param version  of CUDA that brought the wanted form of the function (12000: 12.0): later ones
///   of the same name may take other arguments
/// @return nullptr where the driver lacks it, or there is none
template <class Function>
Function* driver_function(const char* name, unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t result =
      cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &status);
  const bool is_found = result == cudaSuccess && status == cudaDriverEntryPointSuccess;
  return is_found ? reinterpret_cast<Function*>(found) : nullptr;
}

}  // namespace fourfold::device
