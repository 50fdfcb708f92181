// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "examination.hpp"

#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/kernels/runtime.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/runfile/run_key.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

namespace {

using fourfold::ExitCode;
using fourfold::doctor::Arguments;
namespace comm = fourfold::comm;
namespace doctor = fourfold::doctor;

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
  the end `exclude: --exclude=node3,node7`, for sbatch and srun; nothing after it when no node is
  bad. What it is at stands on stderr.

EXAMPLES
  srun --mpi=pmi2 fourfold doctor run.toml
  sbatch --nodes=4 --ntasks-per-node=8 doctor.sbatch run.toml
  mpiexec -n 2 fourfold doctor --dir /scratch/me --seconds 20 --json
)";

/// The options and the manual page.
void describe(CLI::App& command, Arguments& arguments) {
  command.add_option("RUN_FILE", arguments.run_file,
                     "The run file (TOML) of the run that is to come; may be left out");
  fourfold::program::add_repeatable_option(
      command, "--set", arguments.overrides,
      "Override a key of the run file; may be given several times", "KEY=VALUE");
  fourfold::program::add_repeatable_option(
      command, "--dir", arguments.directories,
      "Look at this directory too: one that all nodes share; may be given several times", "DIR");
  command
      .add_option(
          "--seconds", arguments.seconds,
          "Time for all of it, about; with less, figures are of fewer and shorter measurements")
      ->check(fourfold::program::number_between(5, 3600))
      ->capture_default_str();
  command.add_flag("--json", arguments.json, "Print one JSON object, for programs to read");
  command.footer(
      std::string(manual) + "\nEXIT CODES\n" +
      fourfold::program::exit_codes_table(
          {ExitCode::config, ExitCode::node_fault, ExitCode::hang}) +
      "  78 comes before 85: leaving nodes out would not be enough then. Warnings end with 0\n");
}

/// Who does not get through is found out as in training, and left out the same way.
void watch(comm::MpiRuntime& mpi, double seconds) {
  constexpr double least_s = 10;  // what a busy machine may keep a rank waiting
  mpi.watch({.limits = {.deadline_s = std::max(seconds, least_s),
                        .silence_s = std::max(seconds / 2, least_s)},
             .on_hang = [](const comm::HangDiagnosis& verdict, const std::string& /*report*/) {
               fourfold::program::print(
                   "exclude: --exclude={}\n",
                   fmt::join(doctor::node_names(verdict.bad_hosts(), {}), ","));
               std::fflush(stdout);
             }});
}

ExitCode examine(const Arguments& arguments, int argc, char** argv) {
  comm::MpiRuntime mpi(&argc, &argv);
  watch(mpi, arguments.seconds);
  fourfold::device::take_device(mpi.device_place(true));  // too few are found below
  const fourfold::kernels::Runtime kernels;
  const doctor::Examination found = doctor::examine(arguments, mpi);
  if (mpi.world().rank() == 0) {
    fourfold::program::print_text(arguments.json ? to_json(found) + "\n" : report(found));
    std::fflush(stdout);
  }
  const std::int64_t code = static_cast<int>(doctor::verdict(found.checks));  // of rank 0 alone
  return static_cast<ExitCode>(comm::all_reduce_scalar(mpi.world(), code, comm::ReduceOp::max));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{
      "Looks at a job's nodes before a run does: started on its ranks, it measures them, their "
      "network and file systems for less than a minute, and names what is wrong or stands out.",
      "fourfold doctor"};
  Arguments arguments;
  describe(command, arguments);
  return fourfold::program::run("fourfold doctor", [&] {
    if (const auto end =
            fourfold::program::parse(command, argc, argv, fourfold::runfile::keys_called)) {
      return *end;
    }
    fourfold::program::enable_verbose_log();
    if (arguments.run_file.empty() && !arguments.overrides.empty()) {
      throw fourfold::UserError(
          ExitCode::usage,
          "--set without a run file (there is nothing to override); name the run file");
    }
    return examine(arguments, argc, argv);
  });
}
