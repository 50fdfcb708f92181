// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Operations on buffers that are not filled yet when they are called, and are written over as soon
// as the stream that waited may do so: as every operation of a step.
#include "host/pattern.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/device/timed_event.hpp>
#include <fourfold/harness/on_ranks.hpp>

#include <catch2/catch_test_macros.hpp>

#include <functional>
#include <numeric>
#include <vector>

namespace fourfold::comm {
namespace {

using device::Buffer;
using device::MemoryKind;
using harness::Findings;

constexpr std::int64_t elements = 1021;

/// Numbers in device memory that come from and go to pinned memory, as late as they are allowed to.
class LateNumbers {
 public:
  explicit LateNumbers(std::int64_t count)
      : count_(count), here_(bytes(), MemoryKind::pinned), there_(bytes()) {}

  /// Enqueues the filling with a rank's pattern.
  void fill(int rank, device::StreamRef stream) {
    // Nothing is given back here: that waits for the device, which may wait for other ranks.
    for (std::int64_t i = 0; i < count_; ++i) {
      static_cast<float*>(here_.data())[i] = static_cast<float>(pattern(rank, i));
    }
    device::copy(there_.data(), here_.data(), bytes(), stream);
  }
  /// Enqueues numbers that nobody should ever see.
  void spoil(device::StreamRef stream) { device::zero(there_.data(), bytes(), stream); }
  /// Enqueues the way back.
  void fetch(device::StreamRef stream) {
    device::copy(here_.data(), there_.data(), bytes(), stream);
  }
  /// Of what came back.
  std::int64_t wrong(const std::function<double(std::int64_t)>& expected) const {
    const auto* const values = static_cast<const float*>(here_.data());
    return first_wrong(Values<float>(values, values + count_), expected);
  }
  TensorView view(std::int64_t begin = 0, std::int64_t count = -1) const {
    return {static_cast<float*>(there_.data()) + begin, {count < 0 ? count_ - begin : count}};
  }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(float); }
  std::int64_t count_;
  Buffer here_;
  Buffer there_;
};

TEST_CASE("collectives wait for what fills their buffers, and are waited for by streams",
          "[device_order]") {
  harness::on_ranks([](Communicator& world, Findings& findings) {
    const int ranks = world.size();
    const device::Stream computing;
    const device::Stream reading;
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), elements);
    LateNumbers reduced(elements);
    LateNumbers whole(elements * ranks);
    LateNumbers part(elements);
    LateNumbers gathered(elements * ranks);
    for (int step = 0; step < 3; ++step) {
      reduced.fill(world.rank(), computing);
      whole.fill(world.rank(), computing);
      Work reduction = world.all_reduce(reduced.view(), ReduceOp::sum, computing);
      Work scatter =
          world.reduce_scatter(whole.view(), part.view(), counts, ReduceOp::sum, computing);
      scatter.wait(reading);
      whole.spoil(reading);  // the others have read it by then
      Work gathering = world.all_gather(part.view(), gathered.view(), counts, reading);
      gathering.wait(reading);
      part.spoil(reading);
      gathered.fetch(reading);
      reduction.wait(computing);
      reduced.fetch(computing);
      computing.ref().synchronize();
      reading.ref().synchronize();
      const auto sum = [ranks](std::int64_t i) { return reduced_pattern(ReduceOp::sum, ranks, i); };
      findings.check(reduced.wrong(sum) < 0, "all_reduce");
      findings.check(gathered.wrong(sum) < 0, "reduce_scatter, then all_gather");
    }
  });
}

TEST_CASE("messages wait for what fills their buffers, and may cross", "[device_order]") {
  harness::on_ranks([](Communicator& world, Findings& findings) {
    if (world.size() == 1) {
      return;
    }
    const device::Stream computing;
    const device::Stream communicating(device::StreamPriority::high);
    const int next = (world.rank() + 1) % world.size();
    const int previous = (world.rank() + world.size() - 1) % world.size();
    LateNumbers leaving(elements);
    LateNumbers arriving(elements);
    device::Event filled_in;
    std::vector<MessageRoute> routes;
    for (int rank = 0; rank < world.size(); ++rank) {
      routes.push_back({rank, (rank + 1) % world.size(), 3});
    }
    world.expect_messages(routes);
    for (int step = 0; step < 3; ++step) {
      Work arrival = world.recv(arriving.view(), previous, 3, communicating);
      leaving.fill(world.rank() + step, computing);
      filled_in.record(computing);
      filled_in.wait(communicating);
      Work departure = world.send(leaving.view(), next, 3, communicating);
      arrival.wait(computing);
      arriving.fetch(computing);
      departure.wait(computing);
      leaving.spoil(computing);
      computing.ref().synchronize();
      findings.check(arriving.wrong([&](std::int64_t i) {
        return static_cast<double>(pattern(previous + step, i));
      }) < 0,
                     "a message");
    }
  });
}

TEST_CASE("what lies on the host goes through the host's communicator", "[device_order]") {
  harness::on_ranks([](Communicator& world, Findings& findings) {
    const auto sum = all_reduce_scalar(world, std::int64_t{1}, ReduceOp::sum);
    findings.check(sum == world.size(), "scalar");
    findings.check(world.host().size() == world.size(), "size");
    findings.check(world.host().rank() == world.rank(), "rank");
    const auto line = world.split(world.rank() % 2, 0, "line");
    findings.check(all_reduce_scalar(*line, 1.0, ReduceOp::sum) == line->size(), "of a part");
    findings.check(line->flight_recorder() == world.flight_recorder(), "recorder");
  });
}

TEST_CASE("collectives over registered memory, which ends before its communicators",
          "[device_order]") {
  harness::on_ranks([](Communicator& world, Findings& findings) {
    const int ranks = world.size();
    const auto half = world.split(world.rank() % 2, world.rank(), "half");
    const device::Stream computing;
    LateNumbers numbers(elements);
    LateNumbers others(elements);
    const auto bytes = static_cast<std::size_t>(elements) * sizeof(float);
    const auto with_world = world.register_memory(numbers.view().data(), bytes);
    const auto with_half = half->register_memory(numbers.view().data(), bytes);
    auto again = world.register_memory(numbers.view().data(), bytes);
    auto for_a_while = world.register_memory(others.view().data(), bytes);
    findings.check(world.register_memory(nullptr, 0) == nullptr, "nothing to register");
    for (int step = 0; step < 3; ++step) {
      numbers.fill(world.rank(), computing);
      world.all_reduce(numbers.view(), ReduceOp::sum, computing).wait(computing);
      numbers.fetch(computing);
      computing.ref().synchronize();
      const auto sum = [ranks](std::int64_t i) { return reduced_pattern(ReduceOp::sum, ranks, i); };
      findings.check(numbers.wrong(sum) < 0, "all_reduce");
      for_a_while.reset();
      again.reset();  // it is still registered
    }
    half->all_reduce(numbers.view(), ReduceOp::max, computing).wait(computing);
    computing.ref().synchronize();
  });
}

// On a device an operation's time must not depend on when the host looks, nor on what is enqueued
// after it meanwhile.
TEST_CASE("the end of what is in a device's queue is marked right after it", "[device_order]") {
  harness::on_ranks([](Communicator& world, Findings& findings) {
    const device::Stream computing;
    const device::Stream reading;
    const device::StreamClock clock(computing);
    LateNumbers reduced(elements);
    reduced.fill(world.rank(), computing);
    Work reduction = world.all_reduce(reduced.view(), ReduceOp::sum, computing);
    device::TimedEvent end;
    const bool is_marked = reduction.mark_end(end);
    const bool is_nccl = !world.sums_in_rank_order();
    findings.check(is_marked == (device::has_own_memory && is_nccl), "who knows");
    LateNumbers other(elements);
    other.fill(world.rank(), computing);
    device::TimedEvent after;
    after.record(computing);
    reduction.wait(reading);
    reading.ref().synchronize();
    computing.ref().synchronize();
    findings.check(after.has_happened(), "all is over");
    if (is_marked) {
      findings.check(end.has_happened(), "and so is what came before");
      findings.check(clock.time_s(end) <= clock.time_s(after), "in order");
    }
  });
}

}  // namespace
}  // namespace fourfold::comm
