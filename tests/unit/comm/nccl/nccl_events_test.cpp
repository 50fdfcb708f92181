// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which events a step's operations over NCCL make: the emulated runtime counts them.
#include "emulated_gpu.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/harness/on_ranks.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace fourfold::comm {
namespace {

using harness::Findings;

TEST_CASE("after the first steps no operation makes an event", "[nccl_events]") {
  harness::on_ranks([](Communicator& world, Findings& findings) {
    const int ranks = world.size();
    const int next = (world.rank() + 1) % ranks;
    const int previous = (world.rank() + ranks - 1) % ranks;
    std::vector<MessageRoute> routes;
    for (int rank = 0; ranks > 1 && rank < ranks; ++rank) {
      routes.push_back({rank, (rank + 1) % ranks, 1});
    }
    world.expect_messages(routes);
    const device::Stream computing;
    const device::Buffer memory(3 * 21 * sizeof(float));
    const auto values = [&](int part) {
      return TensorView(static_cast<float*>(memory.data()) + 21 * part, {21});
    };
    const auto step = [&] {
      world.all_reduce(values(0), ReduceOp::sum, computing).wait(computing);
      world.all_reduce(values(0), ReduceOp::sum, {}).wait(computing);
      for (int message = 0; ranks > 1 && message < 2; ++message) {  // both on one line
        Work arrival = world.recv(values(1), previous, 1, computing);
        Work departure = world.send(values(2), next, 1, computing);
        arrival.wait(computing);
        departure.wait(computing);
      }
      computing.ref().synchronize();
    };
    // What marks an operation comes back when the watching thread has seen its end, which it looks
    // for ten times a second: there are enough of them at some step, if not at the second.
    std::int64_t made = 1;  // by the last step, on the rank that made most
    for (int i = 0; i < 20 && made > 0; ++i) {
      const std::size_t before = emulated::events_made();
      step();
      made = all_reduce_scalar(world, static_cast<std::int64_t>(emulated::events_made() - before),
                               ReduceOp::max);
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
    }
    findings.check(made == 0, fmt::format("each step makes events, the last one {}", made));
  });
}

}  // namespace
}  // namespace fourfold::comm
