// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"

#include <fourfold/batch/cluster_facts.hpp>
#include <fourfold/batch/submission.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace fourfold::submit {

/// The job that the arguments ask for, with what they leave out filled in, checked against the run
/// file and against what Slurm's commands say here. What was found is told in the log.
/// @throws UserError: usage; config, naming the key or the option that has to change
batch::Submission checked_submission(const Arguments& arguments,
                                     const runfile::EffectiveConfig& effective);

/// Where this program's installation, or build tree, has what a batch script needs.
struct Installed {
  std::filesystem::path cli;      ///< fourfold
  std::filesystem::path scripts;  ///< the folder of train.sbatch

  /// Of elsewhere.bash there: what stands in a batch script itself, without that file's head.
  /// @throws UserError (config) when it cannot be read
  std::string functions() const;
};

/// @throws UserError (config) when one of them is missing
Installed find_installed();

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

/// Whether the files that a run reads are there, its token files, and the folder that it saves in
/// is or can be made. What lies below a folder of / that is not here (a file system that this node
/// does not mount) cannot be told, and is named in a warning.
/// @param warns  of all that is missing, in place of refusing it
/// @throws UserError (config) naming each name that is missing
void check_paths(const runfile::EffectiveConfig& effective, bool warns);

}  // namespace fourfold::submit
