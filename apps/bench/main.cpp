// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "measured_rank.hpp"

#include <fourfold/base/build_facts.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/device/process_memory.hpp>
#include <fourfold/program/run.hpp>

#include <optional>

namespace {

using fourfold::ExitCode;
namespace bench = fourfold::bench;
namespace comm = fourfold::comm;

std::int64_t line_ranks(const bench::Request& request) {
  return request.axis ? request.mesh[*request.axis] : request.mesh.ranks();
}

ExitCode measure_threads(const bench::Arguments& arguments) {
  const int ranks = arguments.threads;
  const bench::Request request = bench::request_of(arguments, ranks);
  bench::require_memory(request, line_ranks(request), ranks,
                        fourfold::device::available_memory_bytes());
  ExitCode code = ExitCode::finished;
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    const ExitCode own = bench::measure_rank(arguments, request, "threads", world);
    if (world.rank() == 0) {
      code = own;
    }
  });
  return code;
}

ExitCode measure_processes(const bench::Arguments& arguments, int argc, char** argv) {
  const comm::MpiRuntime mpi(&argc, &argv);
  mpi.require_one_build(fourfold::build_name());
  fourfold::device::take_device(mpi.device_place(true));  // whose memory the messages lie in
  const bench::Request request = bench::request_of(arguments, mpi.world().size());
  // The least of all machines, so that all ranks come to the same end.
  const std::int64_t own = fourfold::device::available_memory_bytes().value_or(-1);
  const std::int64_t least = comm::all_reduce_scalar(mpi.world(), own, comm::ReduceOp::min);
  const std::int64_t on_host = mpi.ranks_on_host();
  bench::require_memory(request, line_ranks(request),
                        comm::all_reduce_scalar(mpi.world(), on_host, comm::ReduceOp::max),
                        least < 0 ? std::nullopt : std::optional(least));
  return bench::measure_rank(arguments, request, "mpi", mpi.world());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{"Measures parts of fourfold on this machine or cluster.", "fourfold bench"};
  command.require_subcommand(1);
  CLI::App* const part = command.add_subcommand(
      "comm", "How fast ranks exchange and add up data: latency and bandwidth by size");
  bench::Arguments arguments;
  bench::describe(*part, arguments);
  command.footer(
      "\nEXAMPLES\n"
      "  mpiexec -n 4 fourfold bench comm --library\n"
      "\nEXIT CODES\n" +
      fourfold::program::exit_codes_table({ExitCode::differs, ExitCode::config}));
  return fourfold::program::run("fourfold bench", [&] {
    if (const auto end = fourfold::program::parse(command, argc, argv)) {
      return *end;
    }
    return arguments.threads > 0 ? measure_threads(arguments)
                                 : measure_processes(arguments, argc, argv);
  });
}
