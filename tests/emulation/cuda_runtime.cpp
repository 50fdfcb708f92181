// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The functions of the CUDA runtime that fourfold calls, for an emulated device.
#include "call_result.hpp"
#include "capture.hpp"
#include "cuda_driver.hpp"
#include "device_memory.hpp"
#include "emulated_gpu.hpp"
#include "queues.hpp"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

using namespace fourfold::emulated;

struct CUevent_st {
  Mark mark;
  std::shared_ptr<Capture> capture;  ///< that it was last recorded in, or nullptr
  Progress captured;                 ///< what it marks there
};

namespace {

thread_local int current_device = 0;
std::atomic<std::size_t> events = 0;

/// Host memory that a device reaches: its bytes by address.
class Ranges {
 public:
  void add(void* data, std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    bytes_[static_cast<std::byte*>(data)] = bytes;
  }
  bool remove(void* data) {
    const std::scoped_lock lock(mutex_);
    return bytes_.erase(static_cast<std::byte*>(data)) > 0;
  }
  bool contains(const void* address) const {
    const std::scoped_lock lock(mutex_);
    auto after = bytes_.upper_bound(static_cast<std::byte*>(const_cast<void*>(address)));
    if (after == bytes_.begin()) {
      return false;
    }
    --after;
    return static_cast<const std::byte*>(address) < after->first + after->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::byte*, std::size_t> bytes_;
};

/// Pinned and managed memory alike: the device reaches both, late.
Ranges& reached() {
  static auto* const ranges = new Ranges;
  return *ranges;
}

std::string_view setting(const char* name, std::string_view otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : text;
}

bool is_pageable(const void* address) {
  return !is_device_memory(address) && !reached().contains(address);
}

cudaError_t allocate_reached(void** data, std::size_t bytes) {
  *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*data == nullptr) {
    return note(cudaErrorMemoryAllocation);
  }
  std::memset(*data, 0xFF, bytes);
  reached().add(*data, bytes);
  return cudaSuccess;
}

cudaError_t free_reached(void* data) {
  run_everything();
  if (data != nullptr && !reached().remove(data)) {
    return note(cudaErrorInvalidValue);
  }
  std::free(data);
  return cudaSuccess;
}

}  // namespace

std::size_t fourfold::emulated::events_made() {
  return events;
}

// -- devices --------------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int* count) {
  FAIL_AS_PLANNED("cudaGetDeviceCount")
  begin_driver();
  const std::string_view devices = setting("FOURFOLD_EMULATED_GPUS", "1");
  *count = std::atoi(devices.data());
  if (devices == "no-driver" || devices == "old-driver") {
    return note(cudaErrorInsufficientDriver);
  }
  return *count > 0 ? cudaSuccess : note(cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device) {
  FAIL_AS_PLANNED("cudaSetDevice")
  int count = 0;
  if (const cudaError_t result = cudaGetDeviceCount(&count); result != cudaSuccess) {
    return result;
  }
  if (device < 0 || device >= count) {
    return note(cudaErrorInvalidDevice);
  }
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  const int capability = std::atoi(setting("FOURFOLD_EMULATED_GPU_SM", "90").data());
  std::snprintf(static_cast<char*>(properties->name), sizeof(properties->name), "Emulated GPU");
  properties->totalGlobalMem = DeviceMemory::get().total_bytes();
  properties->major = capability / 10;
  properties->minor = capability % 10;
  properties->multiProcessorCount = 4;
  properties->pciBusID = device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", device);
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  const std::string_view devices = setting("FOURFOLD_EMULATED_GPUS", "1");
  *version = devices == "no-driver" ? 0 : devices == "old-driver" ? 12020 : CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                             unsigned int /*version*/, unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* status) {
  *function = driver_function(symbol);
  *status = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  FAIL_AS_PLANNED("cudaDeviceSynchronize")
  FAIL_IN_CAPTURE()
  run_everything();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

// -- errors ---------------------------------------------------------------------------------------

cudaError_t cudaGetLastError() {
  return take_last_error();
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorECCUncorrectable:
      return "cudaErrorECCUncorrectable";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorStreamCaptureImplicit:
      return "cudaErrorStreamCaptureImplicit";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    default:
      return "cudaErrorEmulated";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "as the emulated device was told to";
}

// -- memory ---------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  FAIL_AS_PLANNED("cudaMalloc")
  FAIL_IN_CAPTURE()
  *data = DeviceMemory::get().allocate(bytes);
  return *data != nullptr ? cudaSuccess : note(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void* data) {
  FAIL_IN_CAPTURE()
  run_everything();  // as the real one waits for the device
  return data == nullptr || DeviceMemory::get().free(data) ? cudaSuccess : free_reached(data);
}

cudaError_t cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t stream) {
  FAIL_AS_PLANNED("cudaMallocAsync")
  FAIL_IN_CAPTURE()
  return queue_of(stream) == nullptr ? note(cudaErrorInvalidResourceHandle)
                                     : cudaMalloc(data, bytes);
}

cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  FAIL_AS_PLANNED("cudaFreeAsync")
  FAIL_IN_CAPTURE()
  const auto queue = queue_of(stream);
  if (queue == nullptr || !is_device_memory(data)) {
    return note(cudaErrorInvalidValue);
  }
  enqueue(queue, {.run = [data] { DeviceMemory::get().free(data); }});
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned int /*flags*/) {
  FAIL_AS_PLANNED("cudaHostAlloc")
  FAIL_IN_CAPTURE()
  return allocate_reached(data, bytes);
}

cudaError_t cudaFreeHost(void* data) {
  FAIL_IN_CAPTURE()
  return free_reached(data);
}

cudaError_t cudaMallocManaged(void** data, std::size_t bytes, unsigned int /*flags*/) {
  FAIL_AS_PLANNED("cudaMallocManaged")
  FAIL_IN_CAPTURE()
  return allocate_reached(data, bytes);
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = DeviceMemory::get().free_bytes();
  *total_bytes = DeviceMemory::get().total_bytes();
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  *attributes = {};
  attributes->type = is_device_memory(data)     ? cudaMemoryTypeDevice
                     : reached().contains(data) ? cudaMemoryTypeHost
                                                : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  FAIL_AS_PLANNED("cudaMemcpyAsync")
  cudaError_t why_not = cudaSuccess;
  const auto queue = queue_for_work(stream, why_not);
  if (queue == nullptr || kind != cudaMemcpyDefault) {
    return note(queue == nullptr ? why_not : cudaErrorInvalidValue);
  }
  if (is_pageable(source) || is_pageable(target)) {
    FAIL_IN_CAPTURE()
  }
  if (is_pageable(source)) {
    if (std::getenv("FOURFOLD_EMULATED_GPU_STAGES") != nullptr) {
      run(queue);
    }
    const auto* const first = static_cast<const std::byte*>(source);
    enqueue(queue, {.run = [target, read = std::vector<std::byte>(first, first + bytes)] {
              std::memcpy(target, read.data(), read.size());
            }});
  } else {
    enqueue(queue, {.run = [=] { std::memcpy(target, source, bytes); }});
  }
  if (is_pageable(target)) {
    run(queue);
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void* target, std::size_t target_pitch, const void* source,
                              std::size_t source_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  FAIL_AS_PLANNED("cudaMemcpy2DAsync")
  cudaError_t why_not = cudaSuccess;
  const auto queue = queue_for_work(stream, why_not);
  const bool fits = width <= target_pitch && width <= source_pitch;
  if (queue == nullptr || kind != cudaMemcpyDefault || !fits || is_pageable(source) ||
      is_pageable(target)) {
    return note(queue == nullptr ? why_not : cudaErrorInvalidValue);
  }
  enqueue(queue, {.run = [=] {
            for (std::size_t row = 0; row < height; ++row) {
              std::memcpy(static_cast<std::byte*>(target) + row * target_pitch,
                          static_cast<const std::byte*>(source) + row * source_pitch, width);
            }
          }});
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream) {
  FAIL_AS_PLANNED("cudaMemsetAsync")
  cudaError_t why_not = cudaSuccess;
  const auto queue = queue_for_work(stream, why_not);
  if (queue == nullptr || is_pageable(target)) {
    return note(queue == nullptr ? why_not : cudaErrorInvalidValue);
  }
  enqueue(queue, {.run = [=] { std::memset(target, value, bytes); }});
  return cudaSuccess;
}

// -- streams and events ---------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags,
                                         int /*priority*/) {
  FAIL_AS_PLANNED("cudaStreamCreateWithPriority")
  FAIL_IN_CAPTURE()
  if (flags != cudaStreamNonBlocking) {
    return note(cudaErrorNotSupported);  // would wait for the default stream
  }
  *stream = reinterpret_cast<cudaStream_t>(make_queue().get());
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const auto queue = queue_of(stream);
  if (stream == nullptr || queue == nullptr) {
    return note(cudaErrorInvalidResourceHandle);
  }
  run(queue);
  forget_queue(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  FAIL_AS_PLANNED("cudaStreamSynchronize")
  cudaError_t why_not = cudaSuccess;
  const auto queue = queue_for_work(stream, why_not);
  why_not = queue == nullptr ? why_not : refuse_on_capturing(queue);
  if (why_not != cudaSuccess) {
    return note(why_not);
  }
  run(queue);
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  FAIL_AS_PLANNED("cudaStreamQuery")
  if (const cudaError_t refused = refuse_on_capturing(queue_of(stream)); refused) {
    return note(refused);
  }
  return run_one(queue_of(stream)) ? cudaSuccess : note(cudaErrorNotReady);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int /*flags*/) {
  FAIL_AS_PLANNED("cudaStreamWaitEvent")
  cudaError_t why_not = cudaSuccess;
  const auto queue = queue_for_work(stream, why_not);
  if (queue == nullptr) {
    return note(why_not);
  }
  if (event->capture != nullptr) {
    if (event->capture != ongoing_capture()) {
      return note(cudaErrorCapturedEvent);
    }
    event->capture->join(queue, event->captured);
    return cudaSuccess;
  }
  if (queue->capture != nullptr) {  // what is recorded waits for nothing that is not
    queue->capture->break_off();
    return note(cudaErrorStreamCaptureIsolation);
  }
  if (event->mark.queue != nullptr && event->mark.queue != queue) {
    enqueue(queue,
            {.kind = Item::Kind::wait, .queue = event->mark.queue, .mark = event->mark.count});
  }
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  FAIL_AS_PLANNED("cudaLaunchHostFunc")
  cudaError_t why_not = cudaSuccess;
  const auto queue = queue_for_work(stream, why_not);
  if (queue == nullptr) {
    return note(why_not);
  }
  enqueue(queue, {.kind = Item::Kind::host_work, .run = [=] { function(data); }});
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int /*flags*/) {
  FAIL_AS_PLANNED("cudaEventCreateWithFlags")
  *event = new CUevent_st;
  ++events;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  FAIL_AS_PLANNED("cudaEventRecord")
  cudaError_t why_not = cudaSuccess;
  const auto queue = queue_for_work(stream, why_not);
  if (queue == nullptr) {
    return note(why_not);
  }
  event->capture = queue->capture;
  if (event->capture != nullptr) {
    event->captured = event->capture->mark(queue.get());
    return cudaSuccess;
  }
  event->mark = mark(queue);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  FAIL_AS_PLANNED("cudaEventSynchronize")
  if (event->capture != nullptr) {
    return note(cudaErrorCapturedEvent);
  }
  if (event->mark.queue != nullptr) {
    run_to(event->mark.queue, event->mark.count);
  }
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  FAIL_AS_PLANNED("cudaEventQuery")
  if (event->capture != nullptr) {
    return note(cudaErrorCapturedEvent);
  }
  if (has_passed(event->mark)) {
    return cudaSuccess;
  }
  run_one(event->mark.queue);
  return note(cudaErrorNotReady);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  FAIL_AS_PLANNED("cudaEventElapsedTime")
  for (const cudaEvent_t event : {begin, end}) {
    if (event->mark.queue == nullptr) {
      return note(cudaErrorInvalidResourceHandle);
    }
    if (!has_passed(event->mark)) {
      return note(cudaErrorNotReady);
    }
  }
  *milliseconds = static_cast<float>(1e3 * (*end->mark.time_s - *begin->mark.time_s));
  return cudaSuccess;
}
