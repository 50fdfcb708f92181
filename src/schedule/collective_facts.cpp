// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/schedule/collective_facts.hpp>

#include <fmt/format.h>

namespace fourfold::schedule {

std::string str(const CollectiveFacts& collective) {
  return fmt::format("{} {}, {:.2f} MB", collective.operation, collective.communicator,
                     static_cast<double>(collective.bytes) / 1e6);
}

double bus_gb_s(const CollectiveFacts& collective, double time_s) {
  return time_s > 0 ? static_cast<double>(collective.bytes) / time_s / 1e9 * collective.bus_factor
                    : 0;
}

}  // namespace fourfold::schedule
