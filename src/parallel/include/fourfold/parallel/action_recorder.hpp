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
  std::vector<double> times_s(const device::StreamClock& clock) const {
    std::vector<double> times_s;
    times_s.reserve(2 * begin_.size());
    for (std::size_t i = 0; i < begin_.size(); ++i) {
      times_s.push_back(clock.time_s(begin_[i]));
      times_s.push_back(clock.time_s(end_[i]));
    }
    return times_s;
  }

 private:
  std::vector<device::TimedEvent> begin_;
  std::vector<device::TimedEvent> end_;
  std::vector<bool> has_ended_;
};

/// The step as all ranks of the pipeline measured it, on rank 0's clock. Collective over pp; every
/// rank gets the same. Times are in seconds of each rank's own clock.
/// @param schedule   the same on all ranks; as the Pipeline that was recorded has it
/// @param actions_s  begin and end of each action of this rank's list, in pairs
/// @param spans      any, of this rank; names of one line
/// @param clock_offset_s  this rank's clock minus rank 0's (comm::clock_offset_s)
/// @pre actions_s.size() is twice the number of actions of this rank
schedule::Timeline gather_timeline(const schedule::Schedule& schedule,
                                   std::span<const double> actions_s,
                                   std::span<const schedule::TimelineSpan> spans,
                                   double clock_offset_s, comm::Communicator& pp);

}  // namespace fourfold::parallel
