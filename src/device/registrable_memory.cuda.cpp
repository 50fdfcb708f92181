// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "registrable_memory.hpp"

#include "cuda_check.hpp"
#include "native_stream.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>

namespace fourfold::device {
namespace {

/// The driver's functions for memory in parts, in the forms of the CUDA that brought each.
struct Driver {
  decltype(cuDeviceGetAttribute)* get_attribute =
      driver_function<decltype(cuDeviceGetAttribute)>("cuDeviceGetAttribute", 2000);
  CUresult (*get_device)(CUdevice*) = driver_function<CUresult(CUdevice*)>("cuCtxGetDevice", 2000);
  decltype(cuMemGetAllocationGranularity)* granularity =
      driver_function<decltype(cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity",
                                                               10020);
  decltype(cuMulticastGetGranularity)* multicast_granularity =
      driver_function<decltype(cuMulticastGetGranularity)>("cuMulticastGetGranularity", 12010);
  decltype(cuMemCreate)* create = driver_function<decltype(cuMemCreate)>("cuMemCreate", 10020);
  decltype(cuMemRelease)* release = driver_function<decltype(cuMemRelease)>("cuMemRelease", 10020);
  decltype(cuMemAddressReserve)* reserve =
      driver_function<decltype(cuMemAddressReserve)>("cuMemAddressReserve", 10020);
  decltype(cuMemAddressFree)* free =
      driver_function<decltype(cuMemAddressFree)>("cuMemAddressFree", 10020);
  decltype(cuMemMap)* map = driver_function<decltype(cuMemMap)>("cuMemMap", 10020);
  decltype(cuMemUnmap)* unmap = driver_function<decltype(cuMemUnmap)>("cuMemUnmap", 10020);
  decltype(cuMemSetAccess)* set_access =
      driver_function<decltype(cuMemSetAccess)>("cuMemSetAccess", 10020);

  bool is_whole() const {
    return get_attribute != nullptr && get_device != nullptr && granularity != nullptr &&
           create != nullptr && release != nullptr && reserve != nullptr && free != nullptr &&
           map != nullptr && unmap != nullptr && set_access != nullptr;
  }
};

const Driver& driver() {
  static const Driver functions;
  return functions;
}

void check(CUresult result, const char* call, std::size_t bytes = 0) {
  check_cuda(static_cast<cudaError_t>(result), call, bytes);  // one numbering for both
}

bool has(CUdevice device, CUdevice_attribute attribute) {
  int value = 0;
  return driver().get_attribute(&value, attribute, device) == CUDA_SUCCESS && value != 0;
}

/// How a device's memory is made and in what pages.
struct Pages {
  CUmemAllocationProp properties{};
  std::size_t bytes = 0;
};

constexpr auto both_handles = static_cast<CUmemAllocationHandleType>(
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC);

/// What is bound for a multicast of the switch has pages of its own.
std::size_t multicast_page_bytes(const CUmemAllocationProp& properties) {
  if (driver().multicast_granularity == nullptr ||
      !has(properties.location.id, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED)) {
    return 1;
  }
  CUmulticastObjectProp multicast{};
  multicast.numDevices = 2;
  multicast.size = std::size_t{2} << 20;
  multicast.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  std::size_t bytes = 1;
  // Not the recommended ones, which may be of half a gigabyte.
  const CUresult result =
      driver().multicast_granularity(&bytes, &multicast, CU_MULTICAST_GRANULARITY_MINIMUM);
  return result == CUDA_SUCCESS ? bytes : 1;
}

std::optional<Pages> ask_for_pages() {
  CUdevice device = 0;
  if (!driver().is_whole() || driver().get_device(&device) != CUDA_SUCCESS ||
      !has(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) ||
      !has(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)) {
    return std::nullopt;
  }
  Pages pages;
  pages.properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  pages.properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  pages.properties.location.id = device;
  pages.properties.requestedHandleTypes =
      has(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED)
          ? both_handles
          : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (has(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED)) {
    pages.properties.allocFlags.gpuDirectRDMACapable = 1;
  }
  check(driver().granularity(&pages.bytes, &pages.properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
        "cuMemGetAllocationGranularity");
  pages.bytes = std::max(pages.bytes, multicast_page_bytes(pages.properties));
  return pages;
}

/// A process has one device.
std::optional<Pages>& pages() {
  static std::optional<Pages> found = ask_for_pages();
  return found;
}

std::size_t in_pages(std::size_t bytes) {
  return (bytes + pages()->bytes - 1) / pages()->bytes * pages()->bytes;
}

/// Whether there is no such memory here, rather than too little of it.
bool is_refusal(CUresult result) {
  return result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED ||
         result == CUDA_ERROR_INVALID_DEVICE;
}

/// @return nothing where it is refused
std::optional<CUmemGenericAllocationHandle> create(std::size_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp& properties = pages()->properties;
  CUresult result = driver().create(&handle, bytes, &properties, 0);
  // Handles for other machines want a service that is not running everywhere.
  if (is_refusal(result) && properties.requestedHandleTypes == both_handles) {
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    result = driver().create(&handle, bytes, &properties, 0);
  }
  if (is_refusal(result)) {
    return std::nullopt;
  }
  check(result, "cuMemCreate", bytes);
  return handle;
}

/// @return the call that failed; nullptr: none, and the device reaches the pages at `address`
const char* map(CUdeviceptr address, CUmemGenericAllocationHandle handle, std::size_t bytes,
                CUresult& result) {
  result = driver().map(address, bytes, 0, handle, 0);
  if (result != CUDA_SUCCESS) {
    return "cuMemMap";
  }
  const CUmemAccessDesc ours{pages()->properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  result = driver().set_access(address, bytes, &ours, 1);
  if (result != CUDA_SUCCESS) {
    driver().unmap(address, bytes);
    return "cuMemSetAccess";
  }
  return nullptr;
}

/// Takes the handle, too: what is mapped lives until it is unmapped.
CUdeviceptr at_an_address(CUmemGenericAllocationHandle handle, std::size_t bytes) {
  CUdeviceptr address = 0;
  CUresult result = driver().reserve(&address, bytes, pages()->bytes, 0, 0);
  const char* failed = result == CUDA_SUCCESS ? nullptr : "cuMemAddressReserve";
  if (failed == nullptr) {
    failed = map(address, handle, bytes, result);
    if (failed != nullptr) {
      driver().free(address, bytes);
    }
  }
  driver().release(handle);
  if (failed != nullptr) {
    check(result, failed, bytes);
  }
  return address;
}

}  // namespace

void* allocate_registrable(std::size_t bytes) {
  if (!pages()) {
    return nullptr;
  }
  const auto handle = create(in_pages(bytes));
  return handle ? reinterpret_cast<void*>(at_an_address(*handle, in_pages(bytes))) : nullptr;
}

void free_registrable(void* data, std::size_t bytes) noexcept {
  const auto address = reinterpret_cast<CUdeviceptr>(data);
  std::ignore = cudaDeviceSynchronize();  // as cudaFree() does
  std::ignore = driver().unmap(address, in_pages(bytes));
  std::ignore = driver().free(address, in_pages(bytes));
}

}  // namespace fourfold::device
