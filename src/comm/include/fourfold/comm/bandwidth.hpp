// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/flight_recorder.hpp>

namespace fourfold::comm {

/// Bus bandwidth is algorithm bandwidth (Call::bytes over time) times this: what each rank's link
/// has to carry whatever the algorithm, as nccl-tests define it. 2(n-1)/n for all_reduce, (n-1)/n
/// for all_gather, reduce_scatter and all_to_all, else 1. @pre ranks > 0
double bus_factor(Operation operation, int ranks) noexcept;

}  // namespace fourfold::comm
