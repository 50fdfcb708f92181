// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

namespace fourfold::runfile {
namespace {

RunField member(auto path) {
  return field(&RunConfig::log, path);
}

}  // namespace

std::vector<RunKey> log_keys() {
  return {
      {.name = "dir",
       .field = member(&LogConfig::dir),
       .path_after = "",
       .meaning = "Directory of the run: metrics.jsonl, status.json, config.toml, report.html, "
                  "exit.json."},
      {.name = "every_steps",
       .field = member(&LogConfig::every_steps),
       .unit = "updates",
       .meaning =
           "Updates between records and log lines; the first and the last step always have one.",
       .minimum = 1},
      {.name = "tensorboard",
       .field = member(&LogConfig::tensorboard),
       .meaning = "Write a TensorBoard event file to log.dir."},
      {.name = "report",
       .field = member(&LogConfig::report),
       .meaning = "Write report.html to log.dir when the run ends."},
      {.name = "trace",
       .field = member(&LogConfig::trace),
       .meaning = "Measure what each rank of the first pipeline does when, and write it to log.dir "
                  "beside what the schedule would take by these costs: trace.json for Perfetto "
                  "(ui.perfetto.dev), timeline.svg to look at."},
      {.name = "trace_steps",
       .field = member(&LogConfig::trace_steps),
       .unit = "updates",
       .meaning = "How many updates are traced, from the second one after a start on.",
       .minimum = 1,
       .maximum = 100},
      {.name = "peak_tflops",
       .field = member(&LogConfig::peak_tflops),
       .unit = "TFLOP/s",
       .meaning = "What the device of a rank can do at most, against which MFU is counted. 0: the "
                  "dense bf16 peak of the GPU's data sheet, where it is known and train.precision "
                  "is bf16 or f16; else no MFU is shown.",
       .minimum = 0,
       .maximum = 1e6},
      {.name = "progress",
       .field = named_field(&RunConfig::log, &LogConfig::progress),
       .meaning = "A bar, plain lines, or none: warnings and errors only; auto: a bar on a "
                  "terminal, lines elsewhere. --progress is short for it."},
  };
}

}  // namespace fourfold::runfile
