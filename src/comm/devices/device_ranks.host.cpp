// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "device_ranks.hpp"

namespace fourfold::comm {

class DeviceRendezvous {};

DeviceRanks::DeviceRanks() = default;
DeviceRanks::~DeviceRanks() = default;

std::unique_ptr<Communicator> DeviceRanks::join(ThreadWorld& /*world*/,
                                                std::unique_ptr<Communicator> host) const {
  return host;
}

}  // namespace fourfold::comm
