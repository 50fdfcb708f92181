// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How much the emulated NCCL has moved, and whether it was told of the memory beforehand.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace fourfold::emulated {

/// Of what operations read and write of their user, each buffer for itself.
struct NcclTraffic {
  std::size_t registered_bytes = 0;  ///< in memory registered with that communicator
  std::size_t reachable_bytes = 0;   ///< of these, in pages that other devices can be let into
  std::size_t largest_unregistered_bytes = 0;  ///< of one buffer that is not; 0: there was none
};

/// Of one communicator: bytes by where they begin.
using RegisteredRanges = std::multimap<void*, std::size_t>;

/// What an operation reads or writes of its user.
struct UserBuffer {
  const void* data = nullptr;
  std::size_t bytes = 0;
};

/// Adds what an operation of the communicator of that name moves. Any thread may call it.
/// @return whether all of it lies in registered memory
bool count_traffic(const std::string& communicator, const RegisteredRanges& registered,
                   const std::vector<UserBuffer>& moved);

/// What this process has called so far, by the names of its communicators.
std::map<std::string, NcclTraffic> nccl_traffic();
void forget_nccl_traffic();

}  // namespace fourfold::emulated
