// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda_driver.hpp"

#include "device_memory.hpp"
#include "planned_failure.hpp"

#include <cuda.h>

#include <cstdlib>
#include <map>
#include <mutex>

namespace fourfold::emulated {
namespace {

/// As the smallest of an H100.
constexpr std::size_t page_bytes = std::size_t{2} << 20;

/// Memory lives as long as somebody has its handle or it is mapped.
struct Pages {
  std::size_t bytes = 0;
  int holders = 1;
};

struct Handles {
  std::mutex mutex;
  std::map<CUmemGenericAllocationHandle, Pages> pages;
  std::map<CUdeviceptr, CUmemGenericAllocationHandle> mapped;
  CUmemGenericAllocationHandle last = 0;

  /// @pre the mutex is held
  void let_go(std::map<CUmemGenericAllocationHandle, Pages>::iterator found) {
    if (--found->second.holders == 0) {
      DeviceMemory::get().give_pages(found->second.bytes);
      pages.erase(found);
    }
  }
};

Handles& handles() {
  static auto* const all = new Handles;
  return *all;
}

void* pointer(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

CUresult device_get_attribute(int* value, CUdevice_attribute attribute, CUdevice /*device*/) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
      *value = 1;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult ctx_get_device(CUdevice* device) {
  int current = 0;
  const cudaError_t result = cudaGetDevice(&current);
  *device = current;
  return static_cast<CUresult>(result);
}

CUresult get_allocation_granularity(std::size_t* bytes, const CUmemAllocationProp* /*properties*/,
                                    CUmemAllocationGranularity_flags /*option*/) {
  *bytes = page_bytes;
  return CUDA_SUCCESS;
}

CUresult get_multicast_granularity(std::size_t* bytes, const CUmulticastObjectProp* /*properties*/,
                                   CUmulticastGranularity_flags option) {
  *bytes = option == CU_MULTICAST_GRANULARITY_MINIMUM ? page_bytes : std::size_t{512} << 20;
  return CUDA_SUCCESS;
}

/// Without the service that fabric handles need, as on most machines.
CUresult mem_create(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                    const CUmemAllocationProp* properties, unsigned long long /*flags*/) {
  if (const cudaError_t planned = planned_failure("cuMemCreate")) {
    return static_cast<CUresult>(planned);
  }
  if ((properties->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0) {
    return CUDA_ERROR_NOT_PERMITTED;
  }
  if (bytes == 0 || bytes % page_bytes != 0 || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!DeviceMemory::get().take_pages(bytes)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Handles& all = handles();
  const std::scoped_lock lock(all.mutex);
  *handle = ++all.last;
  all.pages[*handle] = {.bytes = bytes};
  return CUDA_SUCCESS;
}

CUresult mem_release(CUmemGenericAllocationHandle handle) {
  Handles& all = handles();
  const std::scoped_lock lock(all.mutex);
  const auto found = all.pages.find(handle);
  if (found == all.pages.end()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  all.let_go(found);
  return CUDA_SUCCESS;
}

CUresult mem_address_reserve(CUdeviceptr* address, std::size_t bytes, std::size_t /*alignment*/,
                             CUdeviceptr /*wanted*/, unsigned long long /*flags*/) {
  if (bytes % page_bytes != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  void* const data = DeviceMemory::get().reserve(bytes);
  *address = reinterpret_cast<CUdeviceptr>(data);
  return data != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult mem_address_free(CUdeviceptr address, std::size_t bytes) {
  return DeviceMemory::get().unreserve(pointer(address), bytes) ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
}

CUresult mem_map(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                 CUmemGenericAllocationHandle handle, unsigned long long /*flags*/) {
  Handles& all = handles();
  const std::scoped_lock lock(all.mutex);
  const auto found = all.pages.find(handle);
  if (found == all.pages.end() || found->second.bytes != bytes || offset != 0 ||
      !DeviceMemory::get().map(pointer(address), bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ++found->second.holders;
  all.mapped[address] = handle;
  return CUDA_SUCCESS;
}

CUresult mem_unmap(CUdeviceptr address, std::size_t bytes) {
  Handles& all = handles();
  const std::scoped_lock lock(all.mutex);
  const auto found = all.mapped.find(address);
  if (found == all.mapped.end() || !DeviceMemory::get().unmap(pointer(address), bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  all.let_go(all.pages.find(found->second));
  all.mapped.erase(found);
  return CUDA_SUCCESS;
}

CUresult mem_set_access(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access,
                        std::size_t count) {
  const bool is_ours = count == 1 && access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE &&
                       access->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  return is_ours && DeviceMemory::get().set_access(pointer(address), bytes)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

/// As the environment has it at CUDA's first call.
CUmoduleLoadingMode module_loading() {
  const char* const text = std::getenv("CUDA_MODULE_LOADING");
  static const CUmoduleLoadingMode mode = text != nullptr && std::string_view(text) == "EAGER"
                                              ? CU_MODULE_EAGER_LOADING
                                              : CU_MODULE_LAZY_LOADING;
  return mode;
}

CUresult get_loading_mode(CUmoduleLoadingMode* mode) {
  *mode = module_loading();
  return CUDA_SUCCESS;
}

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void begin_driver() {
  module_loading();
}

void* driver_function(std::string_view name) {
  static const std::map<std::string_view, void*> functions{
      {"cuDeviceGetAttribute", address_of(device_get_attribute)},
      {"cuCtxGetDevice", address_of(ctx_get_device)},
      {"cuMemGetAllocationGranularity", address_of(get_allocation_granularity)},
      {"cuMulticastGetGranularity", address_of(get_multicast_granularity)},
      {"cuMemCreate", address_of(mem_create)},
      {"cuMemRelease", address_of(mem_release)},
      {"cuMemAddressReserve", address_of(mem_address_reserve)},
      {"cuMemAddressFree", address_of(mem_address_free)},
      {"cuMemMap", address_of(mem_map)},
      {"cuMemUnmap", address_of(mem_unmap)},
      {"cuMemSetAccess", address_of(mem_set_access)},
      {"cuModuleGetLoadingMode", address_of(get_loading_mode)}};
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}

}  // namespace fourfold::emulated
