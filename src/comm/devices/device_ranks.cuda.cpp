// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The body of builds for devices: of CUDA it needs nothing but the device room.
#include "communicator/argument_checks.hpp"
#include "device_reduction.hpp"
#include "device_threads.hpp"
#include "device_world.hpp"

#include <fourfold/base/error.hpp>

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace fourfold::comm {

std::shared_ptr<DeviceRendezvous> make_device_rendezvous(ThreadWorld& world, int ranks) {
  if (ranks > most_device_ranks) {
    throw UserError(
        ExitCode::config,
        fmt::format("{} ranks are to share one device as threads (it takes {} at most); "
                    "use a smaller mesh",
                    ranks, most_device_ranks));
  }
  return std::make_shared<DeviceRendezvous>(world, all_ranks(ranks));
}

std::unique_ptr<Communicator> join_on_device(const std::shared_ptr<DeviceRendezvous>& meeting,
                                             std::unique_ptr<Communicator> host) {
  ThreadProgress& progress = meeting->world().progress(host->rank());
  return std::make_unique<DeviceThreadCommunicator>(std::move(host), progress, meeting);
}

}  // namespace fourfold::comm
