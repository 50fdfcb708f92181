// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/comm/bandwidth.hpp>

namespace fourfold::comm {

double bus_factor(Operation operation, int ranks) noexcept {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (operation) {
    case Operation::all_reduce:
      return 2 * others;
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::all_to_all:
      return others;
    default:
      return 1;
  }
}

}  // namespace fourfold::comm
