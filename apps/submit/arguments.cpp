// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <fourfold/base/process_identity.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::submit {
namespace {

const char* const more_help = R"(
OUTPUT
  The script on standard output; what was checked on standard error. With --go: the script goes to
  log.dir/submit.sbatch, or chain.sbatch with --chain, and to sbatch, and standard output has the
  number of the job.

CHECKS
  the run file, and its keys against the checkpoint in log.dir; the files and folders that it names;
  mesh against nodes and tasks, for the fewest and the most nodes; the memory that its ranks need
  against what the job gets of a node; the partition, its time limit and its number of nodes; the
  srun --mpi= that this build needs against those that Slurm has; jobs of this run in the queue.
  Without Slurm's commands (on another machine) what needs them is left out, and said so.

EXAMPLES
  fourfold submit run.toml --nodes 4 --time 8:00:00            look at the script
  fourfold submit run.toml --nodes 4 --time 8:00:00 --go       submit it
  fourfold submit run.toml --nodes 2-4 --chain 5 --go          five jobs at most, on what there is
  fourfold submit run.toml --nodes 4 --requeue --sbatch=--qos=high

)";

}  // namespace

void describe(CLI::App& command, Arguments& arguments) {
  command.add_option("RUN_FILE", arguments.run_file, "The run file (TOML)")->required();
  program::add_repeatable_option(command, "--set", arguments.overrides,
                                 "Override a key of the run file; may be given several times",
                                 "KEY=VALUE");
  program::add_repeatable_option(
      command, "--allow-change", arguments.allowed_changes,
      "A key that may differ from the checkpoint's in log.dir; may be given several times", "KEY");
  command
      .add_option("-N,--nodes", arguments.nodes,
                  "Nodes, or the least and the most (2-4: the run takes what there is, which needs "
                  "mesh.dp = \"auto\"). Default: as many as the mesh needs")
      ->type_name("N[-M]");
  command
      .add_option("--tasks-per-node", arguments.tasks_per_node,
                  "Ranks on a node. Default: what the mesh leaves for a node, or its CPUs")
      ->check(program::whole_number(1));
  command.add_option("--cpus-per-task", arguments.cpus_per_task, "CPUs of a rank")
      ->check(program::whole_number(1))
      ->capture_default_str();
  command.add_option("-t,--time", arguments.time, "Time limit of a job, as Slurm writes it")
      ->type_name("TIME")
      ->envname("SBATCH_TIMELIMIT");
  command
      .add_option("-p,--partition", arguments.partition,
                  "Partition, or several (day,night). Default: the cluster's")
      ->envname("SBATCH_PARTITION");
  command.add_option("-A,--account", arguments.account, "Account")->envname("SBATCH_ACCOUNT");
  command.add_option("-J,--name", arguments.name,
                     "Name of the job; jobs of a chain have it in common. Default: fourfold- and "
                     "the name of log.dir. Without a comma, which ends a name for Slurm");
  command
      .add_option("--site", arguments.site,
                  "What this site needs: a name from share/fourfold/slurm/sites, or a path")
      ->envname("FOURFOLD_SITE");
  command.add_option("--mpi", arguments.mpi, "srun --mpi=. Default: what this build's MPI needs")
      ->envname("FOURFOLD_MPI");
  auto* const chain =
      command
          .add_option(
              "--chain", arguments.chain,
              "A chain of so many jobs at most, one after the other, until the run is finished")
          ->check(program::whole_number(1));
  command
      .add_option("--restarts-inside", arguments.restarts_inside,
                  "When a node or a rank fails, launch the run again in the same job, so often at "
                  "most, on the nodes that are left: without the queue, and from "
                  "checkpoint.node_local_dir. Fewer nodes need mesh.dp = \"auto\"")
      ->envname("FOURFOLD_RESTARTS_INSIDE")
      ->check(program::whole_number(0))
      ->type_name("N");
  command.add_flag("--beside", arguments.beside,
                   "Submit although a job of this run waits or runs: of two that run at one time "
                   "the second is refused");
  command
      .add_flag("--requeue", arguments.requeue,
                "The job goes back into the queue until the run is finished, under one number")
      ->excludes(chain);
  command
      .add_option("--node-memory", arguments.node_memory_gib,
                  "Memory of a node in GiB. Default: as Slurm says")
      ->check(program::number_above(0, 1e6));
  program::add_repeatable_option(command, "--sbatch", arguments.more,
                                 "Another option of sbatch, written long: --sbatch=--qos=high. Not "
                                 "what submit has an option for itself; may be given several times",
                                 "OPTION");
  command.add_flag("--skip-path-checks", arguments.skips_path_checks,
                   "Only warn of files that are not to be seen on this node, and of a "
                   "checkpoint.dir that cannot be made on it");
  command.add_flag("--go", arguments.go, "Submit it");
  command.footer(more_help + std::string("EXIT CODES\n") +
                 program::exit_codes_table({ExitCode::usage, ExitCode::config,
                                            ExitCode::cannot_write, ExitCode::no_progress}));
}

void take_memory_of_environment(Arguments& arguments) {
  const auto says_memory = [](const std::string& option) { return option.starts_with("--mem"); };
  if (std::ranges::any_of(arguments.more, says_memory)) {
    return;
  }
  for (const auto& [variable, option] :
       {std::pair{"SBATCH_MEM_PER_NODE", "--mem"}, {"SBATCH_MEM_PER_CPU", "--mem-per-cpu"}}) {
    const std::string value = environment_text(variable);
    if (!value.empty()) {
      arguments.more.push_back(std::string(option) + "=" + value);
      return;
    }
  }
}

}  // namespace fourfold::submit
