// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/endpoint.threads.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/device_options.hpp>
#include <fourfold/device/device.hpp>

#include <memory>
#include <mutex>
#include <string>

namespace fourfold::comm {

/// The ranks of a run for what lies in the memory of their devices: on a host build the host's
/// communicator itself, else NCCL.
class DeviceWorld {
 public:
  /// Takes this rank's device. Collective over `host`, which outlives this; blocks.
  /// @param machine  the name of this rank's
  DeviceWorld(Communicator& host, const std::string& machine, const device::DevicePlace& place,
              const DeviceOptions& options);
  ~DeviceWorld();
  DeviceWorld(const DeviceWorld&) = delete;
  DeviceWorld& operator=(const DeviceWorld&) = delete;

  Communicator& communicator() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class DeviceRendezvous;

/// Ranks that are threads, on one device.
class DeviceRanks {
 public:
  DeviceRanks();
  ~DeviceRanks();
  DeviceRanks(const DeviceRanks&) = delete;
  DeviceRanks& operator=(const DeviceRanks&) = delete;

  /// A communicator for device memory among the ranks of `host`: on a host build `host` itself.
  /// Called by each of them.
  std::unique_ptr<Communicator> join(ThreadWorld& world, std::unique_ptr<Communicator> host) const;

 private:
  mutable std::mutex mutex_;
  mutable std::shared_ptr<DeviceRendezvous> meeting_;
};

}  // namespace fourfold::comm
