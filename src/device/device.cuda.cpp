// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_check.hpp"
#include "cuda_check.hpp"
#include "host_bytes.hpp"
#include "native_stream.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/device/device.hpp>

#include <cuda.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <tuple>

namespace fourfold::device {
namespace {

constexpr int oldest_known = 80;
/// Of those that this build has code for.
constexpr int oldest_compute_capability = FOURFOLD_OLDEST_COMPUTE_CAPABILITY;
static_assert(oldest_compute_capability >= oldest_known);

std::atomic<int> taken_index = 0;
thread_local int bound_index = -1;

/// @throws UserError when there is none
int count_devices() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0) {
    return count;
  }
  std::ignore = cudaGetLastError();
  int driver = 0;
  int runtime = 0;
  std::ignore = cudaDriverGetVersion(&driver);
  std::ignore = cudaRuntimeGetVersion(&runtime);
  if (driver != 0 && is_fault_of_node(result)) {
    check_cuda(result, "cudaGetDeviceCount");
  }
  const std::string why =
      driver == 0 ? "there is no NVIDIA driver"
      : result == cudaErrorInsufficientDriver
          ? fmt::format("the driver serves CUDA {} and older, this program is of CUDA {}",
                        cuda_version_text(driver), cuda_version_text(runtime))
      : result == cudaErrorNoDevice || result == cudaSuccess
          ? "the driver shows none: CUDA_VISIBLE_DEVICES, or the job did not ask for one"
          : fmt::format("{}: {}", cudaGetErrorName(result), cudaGetErrorString(result));
  throw UserError(ExitCode::config,
                  fmt::format("no GPU can be used here ({}); start it where there are GPUs (sbatch "
                              "--gpus-per-node=N), or use a build for the CPU",
                              why));
}

/// Whether CUDA loads kernels before any runs.
bool loads_kernels_first() {
  constexpr unsigned brought_by = 11070;  // CUDA 11.7
  auto* const get_mode =
      driver_function<decltype(cuModuleGetLoadingMode)>("cuModuleGetLoadingMode", brought_by);
  if (get_mode == nullptr) {
    return true;  // a driver that knows no other way
  }
  CUmoduleLoadingMode mode = CU_MODULE_LAZY_LOADING;
  return get_mode(&mode) == CUDA_SUCCESS && mode == CU_MODULE_EAGER_LOADING;
}

DeviceFacts facts_of(int index) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  std::array<char, 32> bus_id{};
  check_cuda(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), index),
             "cudaDeviceGetPCIBusId");
  int driver = 0;
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  return {.index = index,
          .name = properties.name,
          .bus_id = bus_id.data(),
          .total_bytes = properties.totalGlobalMem,
          .multiprocessors = properties.multiProcessorCount,
          .compute_capability = 10 * properties.major + properties.minor,
          .driver = cuda_version_text(driver),
          .loads_kernels_first = loads_kernels_first()};
}

[[noreturn]] void refuse(const DeviceFacts& facts) {
  const auto text = [](int capability) {
    return fmt::format("{}.{}", capability / 10, capability % 10);
  };
  const bool other_build = facts.compute_capability >= oldest_known;
  throw UserError(
      ExitCode::config,
      fmt::format(
          "GPU {} is too old for this program ({} has compute capability {}; {} {} and newer); {}",
          facts.index, facts.name, text(facts.compute_capability),
          other_build ? "this build has code for" : "fourfold needs",
          text(other_build ? oldest_compute_capability : oldest_known),
          other_build
              ? "build it for this GPU, Kokkos too (docs/gpu.md), or ask for other nodes (sbatch "
                "--constraint or --gres)"
              : "ask for other nodes (sbatch --constraint or --gres): A100, H100 or newer"));
}

}  // namespace

const bool has_own_memory = true;

bool is_only_for_device(const void* data) {
  bind_thread();
  cudaPointerAttributes attributes{};
  check_cuda(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes");
  return attributes.type == cudaMemoryTypeDevice;
}

int taken_device() noexcept {
  return taken_index.load(std::memory_order_relaxed);
}

void bind_thread() {
  const int index = taken_device();
  if (bound_index != index) {
    count_devices();
    check_cuda(cudaSetDevice(index), "cudaSetDevice");
    bound_index = index;
  }
}

void check_device() {
  bind_thread();
  check_cuda(cudaSetDevice(bound_index), "an earlier kernel");
}

void load_kernels_first() {
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

DeviceFacts take_device(const DevicePlace& place) {
  const int count = count_devices();
  // A batch system that binds ranks to devices shows each of them its own, as the only one.
  const bool one_each = count == 1 && !place.may_share;
  if (count < place.ranks_on_host && !one_each && !place.may_share) {
    throw UserError(ExitCode::config,
                    fmt::format("{} ranks on this machine, but {} GPUs (each rank takes one); "
                                "start {} ranks per node, or ask for more GPUs",
                                place.ranks_on_host, count, count));
  }
  taken_index = place.local_rank % count;
  bind_thread();
  DeviceFacts facts = facts_of(taken_index);
  if (facts.compute_capability < oldest_compute_capability) {
    refuse(facts);
  }
  return facts;
}

DeviceFacts device_facts() {
  bind_thread();
  return facts_of(taken_index);
}

MemoryOwner owner_of(MemoryKind kind) {
  if (kind == MemoryKind::pinned || kind == MemoryKind::host) {
    return host_owner();
  }
  bind_thread();
  MemoryOwner owner{.name = "GPU"};
  check_cuda(cudaMemGetInfo(&owner.free_bytes, &owner.total_bytes), "cudaMemGetInfo");
  return owner;
}

}  // namespace fourfold::device
