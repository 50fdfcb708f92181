// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/enum_name.hpp>
#include <fourfold/train/step_recorder.hpp>

#include <algorithm>
#include <iterator>
#include <string>

namespace fourfold::train {

std::string_view name(StepPart part) noexcept {
  constexpr std::array<std::string_view, step_part_count> names{
      "load batch", "forward and backward", "reduce gradients", "clip and update"};
  return name_in(names, part);
}

std::vector<schedule::TimelineSpan> StepRecorder::take_spans(int rank,
                                                             const device::StreamClock& clock) {
  std::vector<schedule::TimelineSpan> spans;
  for (std::size_t part = 0; part < step_part_count; ++part) {
    spans.push_back({rank, std::string(name(static_cast<StepPart>(part))),
                     clock.time_s(marks_[part]), clock.time_s(marks_[part + 1])});
  }
  std::ranges::move(collectives_.take_spans(rank, clock), std::back_inserter(spans));
  return spans;
}

}  // namespace fourfold::train
