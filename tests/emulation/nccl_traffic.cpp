// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "nccl_traffic.hpp"

#include "device_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace fourfold::emulated {

namespace {

bool is_registered(const RegisteredRanges& registered, const UserBuffer& buffer) {
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer.data);
  return std::ranges::any_of(registered, [&](const auto& block) {
    const auto first = reinterpret_cast<std::uintptr_t>(block.first);
    return first <= begin && begin + buffer.bytes <= first + block.second;
  });
}

/// Guards what follows: ranks may be threads.
std::mutex& counting() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

std::map<std::string, NcclTraffic>& traffic() {
  static auto* const by_name = new std::map<std::string, NcclTraffic>;
  return *by_name;
}

}  // namespace

bool count_traffic(const std::string& communicator, const RegisteredRanges& registered,
                   const std::vector<UserBuffer>& moved) {
  const std::scoped_lock lock(counting());
  NcclTraffic& its = traffic()[communicator];
  bool all = true;
  for (const UserBuffer& buffer : moved) {
    if (buffer.bytes == 0 || is_registered(registered, buffer)) {
      its.registered_bytes += buffer.bytes;
      its.reachable_bytes +=
          DeviceMemory::get().is_mapped(buffer.data, buffer.bytes) ? buffer.bytes : 0;
      continue;
    }
    its.largest_unregistered_bytes = std::max(its.largest_unregistered_bytes, buffer.bytes);
    all = false;
  }
  return all;
}

std::map<std::string, NcclTraffic> nccl_traffic() {
  const std::scoped_lock lock(counting());
  return traffic();
}

void forget_nccl_traffic() {
  const std::scoped_lock lock(counting());
  traffic().clear();
}

}  // namespace fourfold::emulated
