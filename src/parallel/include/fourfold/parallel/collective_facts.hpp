// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/flight_recorder.hpp>

#include <cstdint>
#include <string>

namespace fourfold::parallel {

/// A collective as a timeline shows it.
struct CollectiveFacts {
  comm::Operation operation = comm::Operation::all_reduce;
  std::string communicator;  ///< its name
  int ranks = 1;
  std::int64_t bytes = 0;  ///< of a rank's larger buffer
  friend bool operator==(const CollectiveFacts&, const CollectiveFacts&) = default;
};

/// "all_gather zero, 12.58 MB"
std::string str(const CollectiveFacts& collective);

/// What each rank's link carried whatever the algorithm, in GB/s, as `fourfold bench comm` and
/// nccl-tests count it (comm::bus_factor()); 0 when it took no time.
double bus_gb_s(const CollectiveFacts& collective, double time_s);

}  // namespace fourfold::parallel
