// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The functions that cuDNN's frontend calls by name, each found in the library when it is called
/// first, as driver_entry.cuda.cpp does it for the driver's. The frontend can load libraries by
/// itself, but then it also takes a second CUDA runtime (libcudart.so) beside the one that is
/// linked here, and fails where that is missing. The functions are hidden from libraries: cuDNN's
/// own calls must not come here.

#include "attention_backend.hpp"

#include <cudnn.h>
#include <dlfcn.h>
#include <nvrtc.h>

#include <cstdint>
#include <type_traits>

namespace fourfold::kernels {
namespace {

void* library() {
  static void* const found = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  return found;
}

/// `function` names the stand-in below, so that each has a memory of its own.
template <auto* function, class... Arguments>
auto forward(const char* name, Arguments... arguments) {
  static auto* const real =
      reinterpret_cast<decltype(function)>(library() == nullptr ? nullptr : dlsym(library(), name));
  using Result = decltype(real(arguments...));
  if constexpr (std::is_same_v<Result, cudnnStatus_t>) {
    return real == nullptr ? CUDNN_STATUS_NOT_INITIALIZED : real(arguments...);
  } else {
    return real == nullptr ? Result() : real(arguments...);
  }
}

}  // namespace

const CudnnLibrary& cudnn_library() {
  static const CudnnLibrary found = [] {
    const std::size_t version = cudnnGetVersion();
    return CudnnLibrary{version, cudnn_defect(version)};
  }();
  return found;
}

}  // namespace fourfold::kernels

extern "C" {

using fourfold::kernels::forward;

std::size_t CUDNNWINAPI cudnnGetVersion() {
  return forward<cudnnGetVersion>("cudnnGetVersion");
}

const char* CUDNNWINAPI cudnnGetErrorString(cudnnStatus_t status) {
  const char* const text = forward<cudnnGetErrorString>("cudnnGetErrorString", status);
  return text == nullptr ? "there is no cuDNN" : text;
}

void CUDNNWINAPI cudnnGetLastErrorString(char* message, std::size_t size) {
  forward<cudnnGetLastErrorString>("cudnnGetLastErrorString", message, size);
}

cudnnStatus_t CUDNNWINAPI cudnnCreate(cudnnHandle_t* handle) {
  return forward<cudnnCreate>("cudnnCreate", handle);
}

cudnnStatus_t CUDNNWINAPI cudnnDestroy(cudnnHandle_t handle) {
  return forward<cudnnDestroy>("cudnnDestroy", handle);
}

cudnnStatus_t CUDNNWINAPI cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return forward<cudnnSetStream>("cudnnSetStream", handle, stream);
}

cudnnStatus_t CUDNNWINAPI cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  return forward<cudnnGetStream>("cudnnGetStream", handle, stream);
}

cudnnStatus_t CUDNNWINAPI cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                       cudnnBackendDescriptor_t* descriptor) {
  return forward<cudnnBackendCreateDescriptor>("cudnnBackendCreateDescriptor", type, descriptor);
}

cudnnStatus_t CUDNNWINAPI cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return forward<cudnnBackendDestroyDescriptor>("cudnnBackendDestroyDescriptor", descriptor);
}

cudnnStatus_t CUDNNWINAPI cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return forward<cudnnBackendFinalize>("cudnnBackendFinalize", descriptor);
}

cudnnStatus_t CUDNNWINAPI cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                   cudnnBackendAttributeName_t attribute,
                                                   cudnnBackendAttributeType_t type,
                                                   std::int64_t count, const void* elements) {
  return forward<cudnnBackendSetAttribute>("cudnnBackendSetAttribute", descriptor, attribute, type,
                                           count, elements);
}

cudnnStatus_t CUDNNWINAPI cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                                   cudnnBackendAttributeName_t attribute,
                                                   cudnnBackendAttributeType_t type,
                                                   std::int64_t room, std::int64_t* count,
                                                   void* elements) {
  return forward<cudnnBackendGetAttribute>("cudnnBackendGetAttribute", descriptor, attribute, type,
                                           room, count, elements);
}

cudnnStatus_t CUDNNWINAPI cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                              cudnnBackendDescriptor_t operands) {
  return forward<cudnnBackendExecute>("cudnnBackendExecute", handle, plan, operands);
}

// What a norm of the frontend's own is compiled with, which no graph here has.
nvrtcResult nvrtcCreateProgram(nvrtcProgram* /*program*/, const char* /*source*/,
                               const char* /*name*/, int /*header_count*/,
                               const char* const* /*headers*/, const char* const* /*names*/) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram /*program*/, int /*option_count*/,
                                const char* const* /*options*/) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* /*program*/) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram /*program*/, std::size_t* /*bytes*/) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram /*program*/, char* /*text*/) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram /*program*/, std::size_t* /*bytes*/) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram /*program*/, char* /*binary*/) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}

}  // extern "C"
