// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The batch script of a run, as text: a pure function of what was asked for. What the script does
/// is in slurm/train.sbatch and chain.sbatch, which it hands over to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::batch {

/// "4", or "2-4".
struct NodeRange {
  int least = 1;
  int most = 1;
  std::string str() const;
  friend bool operator==(const NodeRange&, const NodeRange&) = default;
};

/// @throws UserError (usage)
NodeRange node_range_of(const std::string& text);

/// Slurm's time limits: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S, in seconds.
/// @throws UserError (usage)
std::int64_t time_limit_s(const std::string& text);

struct Submission {
  std::filesystem::path program;  ///< `fourfold` itself, an absolute path
  std::filesystem::path scripts;  ///< the folder of train.sbatch, absolute
  std::string functions = {};     ///< of slurm/elsewhere.bash, which stand in the script itself
  std::filesystem::path script;   ///< where this one will lie, absolute: a chain submits it again
  std::filesystem::path log_dir;
  std::filesystem::path checkpoint_dir = {};
  std::string run_file;
  std::filesystem::path work_folder = {};  ///< from which the run file's paths are read; empty: any
  std::vector<std::string> arguments;      ///< of `fourfold train`, after the run file
  std::string name;
  NodeRange nodes;
  int tasks_per_node = 1;
  int cpus_per_task = 1;
  std::string time = {};       ///< empty: the partition's default
  std::string partition = {};  ///< empty: the cluster's default
  std::string account = {};
  std::string site = {};    ///< of sites/, or a path
  std::string mpi = {};     ///< srun --mpi=; empty: as the site or Slurm says
  int chain = 0;            ///< most jobs of a chain; 0: no chain
  bool beside = false;      ///< wanted although a job of the run is in the queue
  int restarts_inside = 0;  ///< most restarts in one job, on the nodes that are left of it
  bool requeue = false;     ///< the job goes back into the queue until the run is finished
  std::vector<std::string> more = {};  ///< options of sbatch, "--qos=high"
};

/// The log of the job of that number: in log_dir, or where sbatch is run, if no `#SBATCH` line can
/// hold the name of log_dir.
std::filesystem::path log_of(const Submission& submission, const std::string& number);

/// Stands in each script that script_of() makes, which is known by it.
inline constexpr const char* script_opening = "#!/bin/bash\n";
inline constexpr const char* script_mark = "# Made by `fourfold submit`";

/// @throws UserError (usage) for what a line of `#SBATCH` cannot hold
std::string script_of(const Submission& submission);

}  // namespace fourfold::batch
