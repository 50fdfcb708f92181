// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// A program of several ranks of which one misbehaves as its arguments say, for hang_on_ranks.bash:
// KIND RANK.
#include <fourfold/base/error.hpp>
#include <fourfold/comm/flight_recorder.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/comm/watchdog.hpp>
#include <fourfold/program/run.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace fourfold;
using namespace std::chrono_literals;

constexpr int healthy_steps = 20;
constexpr int all_steps = 200;

void misbehave(const std::string& kind, comm::Communicator& world, comm::Communicator& pair) {
  if (kind == "exit") {
    ::_exit(0);
  } else if (kind == "kill") {
    ::kill(::getpid(), SIGKILL);
  } else if (kind == "stop") {
    ::kill(::getpid(), SIGSTOP);
  } else if (kind == "sleep") {
    for (;;) {
      std::this_thread::sleep_for(1s);
    }
  } else if (kind == "barrier") {
    world.barrier();
  } else if (kind == "bytes") {
    std::vector<double> more(3);
    world.all_reduce({more.data(), {3}}, comm::ReduceOp::sum, {}).wait({});
  } else if (kind == "axis") {
    comm::all_reduce_scalar(pair, 1.0, comm::ReduceOp::sum);
  } else if (kind == "recv") {
    double value = 0;
    pair.recv(TensorView(&value, {1}), 1 - pair.rank(), 1, {}).wait({});
  } else if (kind == "throw") {
    throw UserError(ExitCode::data_corrupt, "the file is damaged (this rank alone sees it)");
  }
}

ExitCode body(int argc, char** argv) {
  const std::string kind = argc > 2 ? argv[1] : "";
  const int suspect = argc > 2 ? std::stoi(argv[2]) : -1;
  comm::MpiRuntime mpi(&argc, &argv);
  comm::Communicator& world = mpi.world();
  const auto pair = world.split(world.rank() / 2, 0, "pair");
  mpi.watch({.limits = {.deadline_s = 2.5, .silence_s = 2.5},
             .on_hang = [](const comm::HangDiagnosis&,
                           const std::string& report) { std::ofstream("hang.json") << report; },
             .on_end = [] { std::ofstream("ended-by-another") << "heard\n"; }});
  for (int step = 0; step < all_steps; ++step) {
    world.flight_recorder()->set_activity("step " + std::to_string(step));
    std::this_thread::sleep_for(30ms);
    if (step == healthy_steps && world.rank() == suspect) {
      misbehave(kind, world, *pair);
    }
    comm::all_reduce_scalar(world, 1.0, comm::ReduceOp::sum);
  }
  if (world.rank() == 0) {
    std::puts("came to the end");
  }
  return ExitCode::finished;
}

}  // namespace

int main(int argc, char** argv) {
  return fourfold::program::run("hang_on_ranks", [&] { return body(argc, argv); });
}
