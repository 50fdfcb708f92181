// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::batch {

/// How long a job had its nodes, as Slurm's controller says. It forgets a job some minutes after
/// the end (MinJobAge, 300 s by default), and of one that was put back into the queue it knows the
/// last start alone.
struct JobSpan {
  std::string job = {};
  std::string state = {};  ///< "RUNNING", "NODE_FAIL"
  double began_unix_s = 0;
  std::optional<double> ended_unix_s = {};  ///< nothing: it goes on
  int nodes = 1;  ///< those that are, or were at the end, not taken out of it
  friend bool operator==(const JobSpan&, const JobSpan&) = default;
};

/// The command whose standard output job_spans() reads: Slurm's squeue (22.05 to 24.11).
/// @pre jobs is not empty
std::vector<std::string> job_spans_command(std::span<const std::string> jobs);

/// The jobs in what that command has printed that have, or had, nodes, in its order. Lines that are
/// none of it, a banner's, are left out.
std::vector<JobSpan> job_spans(std::string_view text);

}  // namespace fourfold::batch
