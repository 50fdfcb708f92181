// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"

#include <fourfold/batch/cluster_facts.hpp>
#include <fourfold/batch/submission.hpp>

#include <string>
#include <vector>

namespace fourfold::submit {

/// The partitions that a job may run in, as Slurm describes them; none, with a warning, where it
/// cannot be asked here.
/// @param names  as sbatch takes them: "day", "day,night"; empty: the cluster's default one
/// @throws UserError (config) where there is no such partition
std::vector<batch::Partition> ask_partitions(const std::string& names);

/// Those of them that can run the job. Of each one that cannot, a warning says why; of each one
/// that starts no job now, too.
/// @param partitions  none: what Slurm would say is not known
/// @throws UserError (config) of the first one's reason where none of them can
std::vector<batch::Partition> those_that_can_run(const std::vector<batch::Partition>& partitions,
                                                 const Arguments& arguments,
                                                 const batch::NodeRange& nodes, int tasks_per_node);

/// Warns of a --time that Slurm reads as minutes and seconds, where hours and minutes may be meant.
void tell_short_time(const std::string& time);

}  // namespace fourfold::submit
