// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The functions of the CUDA driver that Kokkos calls by name, each found when it is called first
/// (native_stream.hpp says why). Hidden: they are for this library alone.
#include "kokkos_errors.hpp"
#include "native_stream.hpp"

#include <cuda.h>

namespace fourfold::kernels {

void stand_in_for_driver() {}

}  // namespace fourfold::kernels

extern "C" {

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  static auto* const function =
      fourfold::device::driver_function<decltype(cuCtxGetDevice)>("cuCtxGetDevice", 2000);
  return function == nullptr ? CUDA_ERROR_NOT_INITIALIZED : function(device);
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
  static auto* const function =
      fourfold::device::driver_function<decltype(cuCtxPushCurrent)>("cuCtxPushCurrent", 4000);
  return function == nullptr ? CUDA_ERROR_NOT_INITIALIZED : function(context);
}

CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext* context) {
  static auto* const function =
      fourfold::device::driver_function<CUresult(CUstream, CUcontext*)>("cuStreamGetCtx", 9020);
  return function == nullptr ? CUDA_ERROR_NOT_INITIALIZED : function(stream, context);
}

}  // extern "C"
