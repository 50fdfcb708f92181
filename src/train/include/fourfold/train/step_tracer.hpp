// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/device/timed_event.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/timeline.hpp>
#include <fourfold/train/step_recorder.hpp>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <vector>

namespace fourfold::train {

/// What log.trace asks for: records some steps, lays what was measured beside what the same
/// schedule would take by the measured costs, and writes both to log.dir: trace.json (for Perfetto)
/// and timeline.svg (the last of the steps). Shows the pipeline of the first replica: the ranks at
/// position 0 of dp, cp and tp.
///
/// Traced are the log.trace_steps steps from the second one of a start on, for in the first one
/// buffers find their size; if there is only one step, that one.
class StepTracer {
 public:
  /// Collective over the pp axis.
  /// @param schedule  the mesh's; borrowed
  /// @param first_step  finished steps when the run starts
  StepTracer(const runfile::RunConfig& config, const schedule::Schedule& schedule, comm::Mesh& mesh,
             std::int64_t first_step, device::StreamRef stream);

  /// Where to record the step after `step` finished ones; nullptr: it is not traced. The same on
  /// all ranks.
  StepRecorder* recorder(std::int64_t step);

  /// Gathers the `step`th step over the pp axis and writes the files, if recorder() gave one for
  /// it; what cannot be written is a warning. Collective over pp. @pre the work of the step is done
  void finish_step(std::int64_t step);

 private:
  void take_in(std::int64_t step, StepRecorder& made);
  void write(std::int64_t step, const schedule::Timeline& measured,
             const schedule::Timeline& planned);

  const schedule::Schedule* schedule_;
  comm::Communicator* pp_;
  bool writes_;  ///< this rank
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
  std::filesystem::path folder_;
  std::deque<StepRecorder> recorders_;  ///< if any step is traced
  device::StreamRef stream_;
  device::StreamClock clock_;
  double clock_offset_s_ = 0;
  std::optional<double> origin_s_;             ///< of the files' axis of time
  std::vector<schedule::Timeline> timelines_;  ///< measured and planned, step after step
};

}  // namespace fourfold::train
