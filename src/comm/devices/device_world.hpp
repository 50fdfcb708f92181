// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/device_options.hpp>
#include <fourfold/device/device.hpp>

#include <memory>
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

}  // namespace fourfold::comm
