// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "examination.hpp"

#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/kernels/runtime.hpp>
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
    validate(arguments);
    return examine(arguments, argc, argv);
  });
}
