// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/program/command_line.hpp>

#include <string>
#include <vector>

namespace fourfold::submit {

struct Arguments {
  std::string run_file;
  std::vector<std::string> overrides;
  std::vector<std::string> allowed_changes;
  std::string nodes;       ///< "4", "2-4"; empty: as many as the run file's mesh needs
  int tasks_per_node = 0;  ///< 0: what the mesh or the nodes' CPUs say
  int cpus_per_task = 1;
  std::string time;
  std::string partition;
  std::string account;
  std::string name;  ///< empty: of log.dir
  std::string site;
  std::string mpi;
  int chain = 0;
  bool beside = false;
  int restarts_inside = 0;
  bool requeue = false;
  double node_memory_gib = 0;  ///< 0: as Slurm says
  std::vector<std::string> more;
  bool skips_path_checks = false;
  bool go = false;
};

/// The options and the manual page.
void describe(CLI::App& command, Arguments& arguments);

/// What a job may have of a node's memory by the variables of sbatch (SBATCH_MEM_PER_NODE, ...), as
/// an option of sbatch, so that it is checked; not where one is given.
void take_memory_of_environment(Arguments& arguments);

}  // namespace fourfold::submit
