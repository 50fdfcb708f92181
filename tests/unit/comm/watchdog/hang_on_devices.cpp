// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// A program of several ranks with a device each, of which one misbehaves as its arguments say, for
// hang_on_devices.bash: KIND RANK [unwatched [DEADLINE_S]].
#include <fourfold/base/error.hpp>
#include <fourfold/comm/device_options.hpp>
#include <fourfold/comm/flight_recorder.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/comm/watchdog.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/program/run.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace fourfold;
using namespace std::chrono_literals;

constexpr int healthy_steps = 20;
constexpr int all_steps = 200;
constexpr std::int64_t elements = 30000;

/// A step enqueues a reduction, and a message after it, and waits for its stream.
class Steps {
 public:
  explicit Steps(comm::Communicator& world)
      : world_(&world), pair_(world.split(world.rank() / 2, 0, "pair")) {
    pair_->expect_messages(std::vector<comm::MessageRoute>{{0, 1, 0}, {1, 0, 0}});
  }
  void take() {
    world_->all_reduce(values(), comm::ReduceOp::sum, computing_).wait(computing_);
    computing_.ref().synchronize();
  }
  void misbehave(const std::string& kind) {
    if (kind == "kill") {
      ::kill(::getpid(), SIGKILL);
    } else if (kind == "stop") {
      ::kill(::getpid(), SIGSTOP);
    } else if (kind == "sleep") {
      for (;;) {
        std::this_thread::sleep_for(1s);
      }
    } else if (kind == "recv") {
      pair_->recv(values(), 1 - pair_->rank(), 0, computing_).wait(computing_);
    } else if (kind == "unexpected") {
      pair_->send(values(), 1 - pair_->rank(), 7, computing_).wait(computing_);
    }
  }

 private:
  TensorView values() const { return {buffer_.data(), DType::f32, {elements}}; }
  comm::Communicator* world_;
  std::unique_ptr<comm::Communicator> pair_;
  device::Buffer buffer_{elements * sizeof(float)};
  device::Stream computing_;
};

ExitCode body(int argc, char** argv) {
  const std::string kind = argc > 2 ? argv[1] : "";
  const int suspect = argc > 2 ? std::stoi(argv[2]) : -1;
  device::load_kernels_first();
  comm::MpiRuntime mpi(&argc, &argv);
  if (argc < 4) {
    mpi.watch({.limits = {.deadline_s = 3, .silence_s = 4},
               .on_hang = [](const comm::HangDiagnosis&, const std::string& report) {
                 std::ofstream("hang.json") << report;
               }});
  }
  comm::Communicator& world = mpi.device_world(
      {.deadline_s = argc > 4 ? std::stod(argv[4]) : 20, .needs_kernels_first = true});
  Steps steps(world);
  for (int step = 0; step < all_steps; ++step) {
    world.flight_recorder()->set_activity("step " + std::to_string(step));
    std::this_thread::sleep_for(10ms);
    if (step == healthy_steps && world.rank() == suspect) {
      steps.misbehave(kind);
    }
    steps.take();
  }
  if (world.rank() == 0) {
    std::puts("came to the end");
  }
  return ExitCode::finished;
}

}  // namespace

int main(int argc, char** argv) {
  return fourfold::program::run(
      "hang_on_devices", [&] { return body(argc, argv); },
      [](fourfold::ExitCode code, const std::string& why) {
        std::fprintf(stderr, "told of %d: %s\n", static_cast<int>(code), why.c_str());
      });
}
