// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace fourfold::schedule {

/// A collective, or a message that arrives, as a timeline shows it.
struct CollectiveFacts {
  std::string operation;     ///< "all_reduce"
  std::string communicator;  ///< its name
  int ranks = 1;
  std::int64_t bytes = 0;  ///< of a rank's larger buffer
  double bus_factor = 1;   ///< times bytes: what its link carries whatever the algorithm
  friend bool operator==(const CollectiveFacts&, const CollectiveFacts&) = default;
};

/// "all_gather zero, 12.58 MB"
std::string str(const CollectiveFacts& collective);

/// What each rank's link carried, in GB/s, as `fourfold bench comm` and nccl-tests count it; 0 when
/// it took no time.
double bus_gb_s(const CollectiveFacts& collective, double time_s);

}  // namespace fourfold::schedule
