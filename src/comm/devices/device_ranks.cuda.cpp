// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The body of builds for devices: of CUDA it needs nothing but the device room.
#include "device_reduction.hpp"
#include "device_threads.hpp"
#include "device_world.hpp"

#include <fourfold/base/error.hpp>

#include <fmt/format.h>

#include <numeric>
#include <utility>
#include <vector>

namespace fourfold::comm {

DeviceRanks::DeviceRanks() = default;
DeviceRanks::~DeviceRanks() = default;

std::unique_ptr<Communicator> DeviceRanks::join(ThreadWorld& world,
                                                std::unique_ptr<Communicator> host) const {
  if (host->size() > most_device_ranks) {
    throw UserError(
        ExitCode::config,
        fmt::format("{} ranks are to share one device as threads (it takes {} at most); "
                    "use a smaller mesh",
                    host->size(), most_device_ranks));
  }
  std::shared_ptr<DeviceRendezvous> meeting;
  {
    const std::scoped_lock lock(mutex_);
    if (!meeting_) {
      std::vector<int> everybody(host->size());
      std::iota(everybody.begin(), everybody.end(), 0);
      meeting_ = std::make_shared<DeviceRendezvous>(world, std::move(everybody));
    }
    meeting = meeting_;
  }
  ThreadProgress& progress = world.progress(host->rank());
  return std::make_unique<DeviceThreadCommunicator>(std::move(host), progress, std::move(meeting));
}

}  // namespace fourfold::comm
