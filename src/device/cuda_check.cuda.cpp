// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda_check.hpp"

#include "cuda/cuda_check.hpp"
#include "host_bytes.hpp"

#include <fourfold/base/amount.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/device/device.hpp>

#include <fmt/format.h>

#include <string_view>
#include <tuple>

namespace fourfold::device {
namespace {

/// Of the host, which every device may copy from and to.
std::string out_of_pinned_memory(const char* call, std::size_t bytes) {
  return fmt::format(
      "{}: {} of {} bytes ({:.2f} GiB) of pinned host memory failed (the machine, the job's memory "
      "limit or `ulimit -l` has no more); ask for more memory, or {}",
      described_device(), call, bytes, gib(bytes), remedies().host_memory);
}

std::string out_of_memory(const char* call, std::size_t bytes) {
  const std::string size =
      bytes > 0 ? fmt::format(" of {} bytes ({:.2f} GiB)", bytes, gib(bytes)) : "";
  return fmt::format("{}: {}{} failed {}", described_device(), call, size, out_of_memory_advice());
}

}  // namespace

std::string described_device() {
  const int index = taken_device();
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) {
    std::ignore = cudaGetLastError();
    return fmt::format("GPU {}", index);
  }
  return fmt::format("GPU {} ({})", index, static_cast<const char*>(properties.name));
}

bool is_fault_of_node(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceUninitialized:
    case cudaErrorSystemNotReady:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorOperatingSystem:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

std::string out_of_memory_advice() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  std::string room = "how much is free cannot be asked";
  if (cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess) {
    room = fmt::format("{:.2f} of {:.2f} GiB are free", gib(free_bytes), gib(total_bytes));
  }
  return fmt::format("({}); {}", room, remedies().device_memory);
}

void check_cuda(cudaError_t result, const char* call, std::size_t bytes) {
  if (result == cudaSuccess) {
    return;
  }
  std::ignore = cudaGetLastError();  // it is told here, and not again by the next call
  if (result == cudaErrorMemoryAllocation) {
    const bool of_host = std::string_view(call).starts_with("cudaHost");
    throw SystemError(ExitCode::config,
                      of_host ? out_of_pinned_memory(call, bytes) : out_of_memory(call, bytes));
  }
  if (result == cudaErrorNoKernelImageForDevice) {
    throw SystemError(ExitCode::config,
                      fmt::format("{}: {} failed (this build has no code for this GPU); build it "
                                  "for it, Kokkos too (docs/gpu.md), or ask for other nodes",
                                  described_device(), call));
  }
  const std::string size = bytes > 0 ? fmt::format(" of {} bytes", bytes) : "";
  const bool node = is_fault_of_node(result);
  throw SystemError(
      node ? ExitCode::node_fault : ExitCode::internal,
      fmt::format("{}: {}{} failed ({}: {}); {}", described_device(), call, size,
                  cudaGetErrorName(result), cudaGetErrorString(result),
                  node ? "leave this node out; its kernel log (dmesg, Xid) says more"
                       : "this is a bug: run again with CUDA_LAUNCH_BLOCKING=1 and report it"));
}

bool is_ready(cudaError_t result, const char* call) {
  if (result == cudaErrorNotReady) {
    std::ignore = cudaGetLastError();
    return false;
  }
  check_cuda(result, call);
  return true;
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace fourfold::device
