// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/work.hpp>
#include <fourfold/device/timed_event.hpp>
#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/timeline.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace fourfold::parallel {

/// When the actions of one rank's list began and ended in one step: filled in by Pipeline::train().
/// Of a compute action, between the two on its stream; of a message, from its posting until it is
/// complete: on a device when it is, else when the rank sees it, which looks between its actions.
class ActionRecorder {
 public:
  /// @param actions  in this rank's list
  explicit ActionRecorder(std::size_t actions)
      : begin_(actions), end_(actions), has_ended_(actions, false) {}

  void begin_step() { has_ended_.assign(has_ended_.size(), false); }
  void begin(std::size_t action, device::StreamRef stream) { begin_[action].record(stream); }
  void end(std::size_t action, device::StreamRef stream) {
    end_[action].record(stream);
    has_ended_[action] = true;
  }
  /// Right after the posting of an action that is a message: its end, if the device knows it.
  void posted(std::size_t action, comm::Work& work) {
    has_ended_[action] = work.mark_end(end_[action]);
  }
  /// In this step.
  bool has_ended(std::size_t action) const { return has_ended_[action]; }

  /// Begin and end of each action, in pairs. @pre all were recorded since `clock` was made
  std::vector<double> times_s(const device::StreamClock& clock) const;

 private:
  std::vector<device::TimedEvent> begin_;
  std::vector<device::TimedEvent> end_;
  std::vector<bool> has_ended_;
};

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
