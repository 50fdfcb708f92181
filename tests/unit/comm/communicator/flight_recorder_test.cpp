// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/flight_recorder.hpp>
#include <fourfold/harness/on_ranks.hpp>

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace fourfold;
using namespace fourfold::comm;
using harness::Findings;
using harness::on_ranks;

namespace {

constexpr Call sum{.operation = Operation::all_reduce, .bytes = 8};

std::string file_of(const FlightRecord& record) {
  const std::string path = record.call.where.file_name();
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

TEST_CASE("the last operations are kept, the oldest first", "[flight_recorder]") {
  FlightRecorder recorder;
  const std::size_t dp = recorder.add_group("dp", {0, 2});
  const std::size_t tp = recorder.add_group("tp", {0, 1});
  CHECK(recorder.snapshot().recent.empty());
  const std::uint64_t first = recorder.enter(dp, sum);
  for (std::size_t i = 0; i < FlightRecorder::kept; ++i) {
    const std::uint64_t number = recorder.enter(tp, {.operation = Operation::barrier});
    if (i % 2 == 0) {
      recorder.leave(number);
    }
  }
  recorder.leave(first);  // forgotten long ago
  const FlightSnapshot snapshot = recorder.snapshot();
  REQUIRE(snapshot.recent.size() == FlightRecorder::kept);
  for (std::size_t i = 0; i < FlightRecorder::kept; ++i) {
    CHECK(snapshot.recent[i].sequence == i + 1);
    CHECK(snapshot.recent[i].communicator == tp);
    CHECK(snapshot.recent[i].left.has_value() == (i % 2 == 0));
  }
  CHECK(snapshot.groups[dp].collectives == 1);
  CHECK(snapshot.groups[tp].collectives == FlightRecorder::kept);
}

TEST_CASE("messages are counted by peer and direction", "[flight_recorder]") {
  FlightRecorder recorder;
  const std::size_t pp = recorder.add_group("pp", {0, 1, 2});
  const auto sequence = [&](Operation operation, int peer) {
    recorder.enter(pp, {.operation = operation, .peer = peer});
    return recorder.snapshot().recent.back().sequence;
  };
  CHECK(sequence(Operation::send, 1) == 1);
  CHECK(sequence(Operation::send, 1) == 2);
  CHECK(sequence(Operation::recv, 1) == 1);
  CHECK(sequence(Operation::send, 2) == 1);
  CHECK(sequence(Operation::send, 1) == 3);
  CHECK(recorder.snapshot().groups[pp].collectives == 0);
}

TEST_CASE("a communicator has one id on all its ranks and no other's", "[flight_recorder]") {
  FlightRecorder one;
  FlightRecorder other;
  one.add_group("dp", {0, 2});
  one.add_group("dp", {0, 2});  // split a second time
  one.add_group("tp", {0, 2});
  one.add_group("dp", {0, 1});
  other.add_group("tp", {2, 3});
  other.add_group("dp", {0, 2});
  other.add_group("dp", {0, 2});
  const auto mine = one.snapshot().groups;
  const auto theirs = other.snapshot().groups;
  CHECK(mine[0].id == theirs[1].id);
  CHECK(mine[1].id == theirs[2].id);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      CHECK(mine[i].id != mine[k].id);
    }
  }
}

TEST_CASE("what was called is summed up every so often", "[flight_recorder]") {
  const auto digests_of = [](std::size_t calls, std::size_t other_at, Call other) {
    FlightRecorder recorder;
    const std::size_t dp = recorder.add_group("dp", {0, 1});
    for (std::size_t i = 1; i <= calls; ++i) {
      recorder.enter(dp, i == other_at ? other : sum);
      recorder.enter(dp, {.operation = Operation::send, .bytes = static_cast<std::int64_t>(i)});
    }
    return recorder.snapshot().groups[dp].digests;
  };
  constexpr std::size_t every = FlightRecorder::digest_every;
  CHECK(digests_of(every - 1, 0, sum)[1].calls == 0);
  const auto usual = digests_of(2 * every + 3, 0, sum);
  CHECK(usual[0].calls == every);
  CHECK(usual[1].calls == 2 * every);
  CHECK(usual[0].digest != usual[1].digest);
  for (const Call other : {Call{.operation = Operation::barrier},
                           Call{.operation = Operation::all_reduce, .bytes = 16}}) {
    const auto late = digests_of(2 * every, every + 2, other);
    CHECK(late[0].digest == usual[0].digest);
    CHECK(late[1].digest != usual[1].digest);
    CHECK(digests_of(2 * every, 1, other)[1].digest != usual[1].digest);  // never forgotten
  }
}

TEST_CASE("it shows what a rank blocks in and what it is about", "[flight_recorder]") {
  FlightRecorder recorder;
  const std::size_t dp = recorder.add_group("dp", {0, 1});
  CHECK_FALSE(recorder.snapshot().waiting);
  const std::uint64_t number = recorder.enter(dp, sum);
  recorder.wait_for(number);
  REQUIRE(recorder.snapshot().waiting);
  CHECK(recorder.snapshot().waiting->call.bytes == 8);
  CHECK(recorder.snapshot().waiting->sequence == 1);
  recorder.wait_over();
  CHECK_FALSE(recorder.snapshot().waiting);
  recorder.set_activity("saving step 500");
  CHECK(recorder.snapshot().activity == "saving step 500");
}

TEST_CASE("operations have names", "[flight_recorder]") {
  for (int i = 0; i <= static_cast<int>(Operation::recv); ++i) {
    const auto operation = static_cast<Operation>(i);
    CHECK(value_named<Operation>(name(operation)) == operation);
  }
  CHECK_FALSE(value_named<Operation>("all_red"));
  CHECK_FALSE(value_named<Operation>(""));
}

TEST_CASE("another thread may look while the rank goes on", "[flight_recorder]") {
  FlightRecorder recorder;
  const std::size_t dp = recorder.add_group("dp", {0, 1});
  std::atomic<bool> is_over{false};
  std::thread rank([&] {
    for (int i = 0; i < 20000; ++i) {
      const std::uint64_t number = recorder.enter(dp, sum);
      recorder.wait_for(number);
      recorder.wait_over();
      recorder.leave(number);
    }
    is_over = true;
  });
  bool in_order = true;
  while (!is_over) {
    const FlightSnapshot snapshot = recorder.snapshot();
    for (std::size_t i = 1; i < snapshot.recent.size(); ++i) {
      in_order = in_order && snapshot.recent[i].sequence == snapshot.recent[i - 1].sequence + 1;
    }
  }
  rank.join();
  CHECK(in_order);
}

TEST_CASE("every call of a communicator is recorded with its place", "[flight_recorder]") {
  on_ranks([](Communicator& world, Findings& findings) {
    FlightRecorder* const recorder = world.flight_recorder();
    findings.check(recorder != nullptr, "a rank has a recorder");
    const int ranks = world.size();
    const auto half = world.split(world.rank() % 2, 0, "half");
    const std::uint64_t before = recorder->snapshot().groups.front().collectives;
    std::vector<float> data(static_cast<std::size_t>(3 * ranks), 1.0F);
    const int line = __LINE__ + 1;
    world.all_reduce({data.data(), {std::ssize(data)}}, ReduceOp::sum, {}).wait({});
    const FlightRecord made = recorder->snapshot().recent.back();
    findings.check(made.call.operation == Operation::all_reduce, "its operation");
    findings.check(made.call.bytes == 12 * ranks, "its bytes");
    findings.check(made.left.has_value(), "it is over");
    findings.check(file_of(made) == "flight_recorder_test.cpp", "its file");
    findings.check(static_cast<int>(made.call.where.line()) == line, "its line");
    all_reduce_scalar(world, 1.0, ReduceOp::max);
    findings.check(file_of(recorder->snapshot().recent.back()) == "flight_recorder_test.cpp",
                   "the place of a call through another function");
    half->barrier();
    const FlightSnapshot now = recorder->snapshot();
    findings.check(now.groups.front().name == "world", "the world is the first group");
    findings.check(now.groups.front().collectives == before + 2, "the world's calls are counted");
    findings.check(now.recent.back().call.operation == Operation::barrier, "the barrier");
    const RecordedGroup& last = now.groups[now.recent.back().communicator];
    findings.check(last.name == "half", "the barrier's communicator");
    std::vector<int> members;
    for (int rank = world.rank() % 2; rank < ranks; rank += 2) {
      members.push_back(rank);
    }
    findings.check(last.world_ranks == members, "its ranks in the world");
    const std::vector<std::string> ids = all_gather_text(world, std::to_string(last.id));
    for (int rank = 0; rank < ranks; ++rank) {
      findings.check((ids[static_cast<std::size_t>(rank)] == std::to_string(last.id)) ==
                         (rank % 2 == world.rank() % 2),
                     "ids tell communicators apart");
    }
    findings.check(!now.waiting, "nothing is waited for");
  });
}

TEST_CASE("sends and receives are recorded with their peer", "[flight_recorder]") {
  on_ranks([](Communicator& world, Findings& findings) {
    if (world.size() < 2 || world.rank() > 1) {
      return;
    }
    double value = world.rank();
    const int peer = 1 - world.rank();
    Work work = world.rank() == 0 ? world.send(ConstTensorView(&value, {1}), peer, 3, {})
                                  : world.recv(TensorView(&value, {1}), peer, 3, {});
    work.wait({});
    const FlightRecord record = world.flight_recorder()->snapshot().recent.back();
    findings.check(record.call.operation == (world.rank() == 0 ? Operation::send : Operation::recv),
                   "its direction");
    findings.check(record.call.peer == peer && record.call.bytes == 8, "its peer and bytes");
    findings.check(record.left.has_value(), "it is over");
  });
}
