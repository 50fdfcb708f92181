// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "slurm_lines.hpp"

#include <fourfold/batch/job_span.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace fourfold::batch {
namespace {

/// What such a job's end stands for is its time limit.
bool goes_on(std::string_view state) {
  constexpr std::array<std::string_view, 5> states{"RUNNING", "SUSPENDED", "STOPPED", "CONFIGURING",
                                                   "RESIZING"};
  return std::ranges::count(states, state) > 0;
}

}  // namespace

std::vector<std::string> job_spans_command(std::span<const std::string> jobs) {
  return {"env",
          "SLURM_TIME_FORMAT=%s",
          "squeue",
          "--noheader",
          "--states=all",
          fmt::format("--jobs={}", fmt::join(jobs, ",")),
          "--format=%A|%T|%S|%e|%D|%N"};
}

std::vector<JobSpan> job_spans(std::string_view text) {
  // Without the names of nodes it waits, or was cancelled while it did.
  static const std::regex form(R"((\d+)\|([A-Z_]+)\|(\d+)\|(\d*)[^|]*\|(\d+)\|[^|\s]+)");
  std::vector<JobSpan> spans;
  for (const auto& line : lines_of_form(text, form)) {
    JobSpan span{.job = line[1],
                 .state = line[2],
                 .began_unix_s = static_cast<double>(number_of(line[3])),
                 .nodes = static_cast<int>(std::clamp(number_of(line[5]), 1L, 1'000'000L))};
    if (!line[4].empty() && !goes_on(span.state)) {
      span.ended_unix_s = number_of(line[4]);
    }
    spans.push_back(std::move(span));
  }
  return spans;
}

}  // namespace fourfold::batch
