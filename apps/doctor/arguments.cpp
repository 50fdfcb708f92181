// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <fourfold/base/error.hpp>

namespace fourfold::doctor {
namespace {

constexpr const char* manual = R"(
WHAT IT LOOKS AT
  launch, mesh, cores    as many ranks as were started, where they are, cores for their threads
  memory, limits         what is free against what the run will need, limits of the shell, huge
                         pages, shared memory
  products, memory speed matrix products and memory bandwidth of every rank, all at once
  transport, network     what the lines of each mesh axis exchange, all at once; from node to node
  directories            write with sync, read back, rename, link, room for the checkpoints, and
                         whether all nodes see the same
  clocks, host names, versions, devices
  A rank or node below 0.8 of the median stands out, if it does so each time it is measured (up to
  three times). With a run file everything is held against what that run needs; without one the
  ranks are one group, and directories are those of --dir.

OUTPUT
  A line per check: ok, warning (a run would do, see to it) or FAIL, with the worst figures. At
  the end `exclude: --exclude=node3,node7`, for sbatch and srun; nothing behind it when no node is
  bad. What it is at stands on stderr.

EXAMPLES
  srun --mpi=pmi2 fourfold doctor run.toml
  sbatch --nodes=4 --ntasks-per-node=8 doctor.sbatch run.toml
  mpiexec -n 2 fourfold doctor --dir /scratch/me --seconds 20 --json
)";

}  // namespace

void describe(CLI::App& command, Arguments& arguments) {
  command.add_option("RUN_FILE", arguments.run_file,
                     "The run file (TOML) of the run that is to come; may be left out");
  program::add_repeatable_option(command, "--set", arguments.overrides,
                                 "Override a key of the run file; may be given several times",
                                 "KEY=VALUE");
  program::add_repeatable_option(command, "--dir", arguments.directories,
                                 "Look at this directory too: one that all nodes share; may be "
                                 "given several times",
                                 "DIR");
  command
      .add_option("--seconds", arguments.seconds,
                  "Time for all of it, about; with less, figures are of fewer and shorter "
                  "measurements")
      ->check(program::number_between(5, 3600))
      ->capture_default_str();
  command.add_flag("--json", arguments.json, "Print one JSON object, for programs to read");
  command.footer(
      std::string(manual) + "\nEXIT CODES\n" +
      program::exit_codes_table({ExitCode::config, ExitCode::node_fault, ExitCode::hang}) +
      "  78 comes before 85: leaving nodes out would not be enough then. Warnings end "
      "with 0\n");
}

void validate(const Arguments& arguments) {
  if (arguments.run_file.empty() && !arguments.overrides.empty()) {
    throw UserError(ExitCode::usage,
                    "--set without a run file (there is nothing to override); name the run file");
  }
}

}  // namespace fourfold::doctor
