// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "device_world.hpp"

namespace fourfold::comm {

struct DeviceWorld::Impl {
  Communicator* host;
};

DeviceWorld::DeviceWorld(Communicator& host, const std::string& /*machine*/,
                         const device::DevicePlace& place, const DeviceOptions& /*options*/)
    : impl_(std::make_unique<Impl>(&host)) {
  device::take_device(place);
}

DeviceWorld::~DeviceWorld() = default;

Communicator& DeviceWorld::communicator() noexcept {
  return *impl_->host;
}

class DeviceRendezvous {};

DeviceRanks::DeviceRanks() = default;
DeviceRanks::~DeviceRanks() = default;

std::unique_ptr<Communicator> DeviceRanks::join(ThreadWorld& /*world*/,
                                                std::unique_ptr<Communicator> host) const {
  return host;
}

}  // namespace fourfold::comm
