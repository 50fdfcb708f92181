// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The device that a process computes on: one, for all its threads. On a host build that is the
/// host itself.
#pragma once

#include <fourfold/device/buffer.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fourfold::device {

/// A device as logs and reports show it.
struct DeviceFacts {
  int index = 0;       ///< among those that this process sees
  std::string name;    ///< "NVIDIA H100 80GB HBM3"; "CPU"
  std::string bus_id;  ///< of PCI: two processes of a machine with the same one share the device
  std::size_t total_bytes = 0;
  int multiprocessors = 0;
  int compute_capability = 0;        ///< 90 for 9.0
  std::string driver;                ///< newest CUDA that the driver serves: "13.0"
  bool loads_kernels_first = false;  ///< before any runs, not each when it first does
};

/// Where a process stands among those that may take devices of the same machine.
struct DevicePlace {
  int local_rank = 0;
  int ranks_on_host = 1;
  bool may_share = false;  ///< several ranks on one device
};

/// Has all kernels loaded before any runs, unless the user has set CUDA_MODULE_LOADING. CUDA's
/// default is late, each when it first runs; for that it may wait until all that runs on the device
/// is done, and hold other calls back. What waits there for another rank's message may wait for
/// what this rank could not enqueue yet. Sets the environment: before there are threads, MPI, or a
/// first call of CUDA. On a host build nothing.
void load_kernels_first();

/// Takes a device for this process and all its threads, before anything else needs one: the one
/// with the number of the rank on this machine, or the only one that the batch system shows.
/// Without this call a process takes the first.
/// @throws UserError (config) when there is no driver or no device, when the device is older than
///   this build can use, or when there are several devices, but fewer than ranks, unless they may
///   share: one that is seen alone is the rank's own
DeviceFacts take_device(const DevicePlace& place);

/// Of the device that this process has taken.
DeviceFacts device_facts();

/// What the memory of a kind is part of.
struct MemoryOwner {
  std::string_view name;        ///< "GPU", "host"
  std::size_t total_bytes = 0;  ///< that it has
  std::size_t free_bytes = 0;   ///< that nobody has taken
};
MemoryOwner owner_of(MemoryKind kind);

/// Whether devices have memory of their own: what the host must not touch.
extern const bool has_own_memory;
/// Whether `data` is such memory.
bool is_only_for_device(const void* data);

/// What a device's tensor cores can do at most in bf16 or f16 with f32 accumulation, without
/// sparsity, in FLOP/s, as its maker states it (H100 SXM: 989.4e12), by the name that its driver
/// gives it (DeviceFacts::name). Nothing where that is not known: a CPU, a part of a GPU (MIG), a
/// model that the table does not have.
std::optional<double> bf16_peak_flop_per_s(std::string_view device_name);

}  // namespace fourfold::device
