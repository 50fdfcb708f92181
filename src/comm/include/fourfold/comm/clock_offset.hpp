// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>

#include <functional>
#include <string>

namespace fourfold::comm {

/// What all processes of one booted machine share, and others do not; empty where nobody can tell.
std::string machine_identity();

/// How far this rank's clock is ahead of rank 0's, in seconds; 0 on ranks whose `machine` is rank
/// 0's, for they read the same clock. Else the quickest of a few messages there and back decides
/// (Cristian 1989): wrong by at most half of its time. Collective; blocks. For set-up and traces.
/// @param machine  machine_identity(); an empty one is like no other
/// @param clock    reads this rank's monotonic clock, in seconds
double clock_offset_s(Communicator& communicator, const std::string& machine,
                      const std::function<double()>& clock);

}  // namespace fourfold::comm
