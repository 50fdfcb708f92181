// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/timed_event.hpp>
#include <fourfold/parallel/action_recorder.hpp>
#include <fourfold/parallel/collective_recorder.hpp>
#include <fourfold/schedule/timeline.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fourfold::train {

/// The parts of a step, in their order. `reduce` is what is left of the gradients' reduction when
/// the backward passes are done; `update` is clipping and the optimizer. Where an update does not
/// wait for the norm of all gradients it is made as they arrive, and lies in `reduce`.
enum class StepPart : std::uint8_t { load, pipeline, reduce, update };
inline constexpr std::size_t step_part_count = 4;
std::string_view name(StepPart part) noexcept;

/// When the parts of one rank's step, the actions of its pipeline and the collectives of its
/// weights, gradients and activations began and ended.
class StepRecorder {
 public:
  /// @param actions  of this rank's list in the schedule
  explicit StepRecorder(std::size_t actions) : actions_(actions) {}

  void begin(device::StreamRef stream) {
    collectives_.begin_step();
    marks_.front().record(stream);
  }
  void end(StepPart part, device::StreamRef stream) {
    marks_[static_cast<std::size_t>(part) + 1].record(stream);
  }
  parallel::ActionRecorder& actions() noexcept { return actions_; }
  const parallel::ActionRecorder& actions() const noexcept { return actions_; }
  parallel::CollectiveRecorder& collectives() noexcept { return collectives_; }

  /// The parts, and the collectives that are complete, of rank `rank`. @pre all were recorded since
  /// `clock` was made
  std::vector<schedule::TimelineSpan> take_spans(int rank, const device::StreamClock& clock);

 private:
  parallel::ActionRecorder actions_;
  parallel::CollectiveRecorder collectives_;
  std::array<device::TimedEvent, step_part_count + 1> marks_;
};

}  // namespace fourfold::train
