// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// A program that fails as its argument says, for fail_on_ranks.bash.
#include <fourfold/base/error.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/program/run.hpp>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace fourfold;

ExitCode body(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  comm::MpiRuntime mpi(&argc, &argv);
  comm::Communicator& world = mpi.world();
  if (how == "all") {
    throw UserError(ExitCode::data_corrupt, "the file is damaged (all ranks see it)");
  }
  if (how == "last" && world.rank() == world.size() - 1) {
    throw UserError(ExitCode::cannot_write, "only the last rank fails");
  }
  if (how == "disagree") {
    std::vector<float> values(world.rank() == 0 ? 5 : 6);
    world.all_reduce({values.data(), {std::ssize(values)}}, comm::ReduceOp::sum, {}).wait({});
  }
  if (how == "exchange") {
    world.use(comm::Algorithm::direct);  // over the network that the script names
    std::vector<float> values(300000);
    world.all_reduce({values.data(), {std::ssize(values)}}, comm::ReduceOp::sum, {}).wait({});
  }
  const bool goes_on = how == "last" || how == "vanish" || how == "crash";
  for (int round = 0; round < (goes_on ? 1000000 : 1); ++round) {
    world.barrier();
    if (how == "crash" && round == 100 && world.rank() == world.size() - 1) {
      std::raise(SIGSEGV);
    }
    if (how == "vanish" && round == 100 && world.rank() == world.size() - 1) {
      std::raise(SIGKILL);
    }
  }
  if (world.rank() == 0) {
    std::puts("came to the end");
  }
  return ExitCode::finished;
}

}  // namespace

int main(int argc, char** argv) {
  return program::run("fail_on_ranks", [&] { return body(argc, argv); });
}
