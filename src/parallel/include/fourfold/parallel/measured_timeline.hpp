// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/timeline.hpp>

#include <span>

namespace fourfold::parallel {

/// What one rank measured of a step, in seconds of its own clock.
struct RankTimings {
  std::span<const double> actions_s;  ///< begin and end of each action of its list, in pairs
  std::span<const schedule::TimelineSpan> spans;  ///< any, of this rank; names of one line
  double clock_offset_s = 0;  ///< its clock minus rank 0's (comm::clock_offset_s)
};

/// The step as all ranks of the pipeline measured it, on rank 0's clock. Collective over pp; every
/// rank gets the same.
/// @param schedule  the same on all ranks; as the Pipeline that was recorded has it
/// @pre mine.actions_s.size() is twice the number of actions of this rank
schedule::Timeline gather_timeline(const schedule::Schedule& schedule, const RankTimings& mine,
                                   comm::Communicator& pp);

}  // namespace fourfold::parallel
