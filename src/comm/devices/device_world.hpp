// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/transport.threads.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/device_options.hpp>
#include <fourfold/device/device.hpp>

#include <memory>
#include <string>

namespace fourfold::comm {

/// The ranks of a run for what lies in the memory of their devices: on a host build `host` itself,
/// else NCCL. Takes this rank's device. Collective over `host`, which outlives it; blocks.
/// @param machine  the name of this rank's
std::shared_ptr<Communicator> make_device_world(Communicator& host, const std::string& machine,
                                                const device::DevicePlace& place,
                                                const DeviceOptions& options);

class DeviceRendezvous;

/// Where ranks that are threads meet on one device; nullptr on a host build.
std::shared_ptr<DeviceRendezvous> make_device_rendezvous(ThreadWorld& world, int ranks);
/// A communicator for device memory among the ranks of `host`: on a host build `host` itself.
/// Called by each of them.
std::unique_ptr<Communicator> join_on_device(const std::shared_ptr<DeviceRendezvous>& meeting,
                                             std::unique_ptr<Communicator> host);

}  // namespace fourfold::comm
