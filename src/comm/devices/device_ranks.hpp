// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/endpoint.threads.hpp"

#include <fourfold/comm/communicator.hpp>

#include <memory>
#include <mutex>

namespace fourfold::comm {

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
