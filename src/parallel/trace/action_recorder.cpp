// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/parallel/action_recorder.hpp>

namespace fourfold::parallel {

std::vector<double> ActionRecorder::times_s(const device::StreamClock& clock) const {
  std::vector<double> times_s;
  times_s.reserve(2 * begin_.size());
  for (std::size_t i = 0; i < begin_.size(); ++i) {
    times_s.push_back(clock.time_s(begin_[i]));
    times_s.push_back(clock.time_s(end_[i]));
  }
  return times_s;
}

}  // namespace fourfold::parallel
