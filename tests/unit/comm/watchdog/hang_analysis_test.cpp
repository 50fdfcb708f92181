// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "watchdog/hang_analysis.hpp"

#include <catch2/catch_test_macros.hpp>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

using namespace fourfold;
using namespace fourfold::comm;
using Kind = HangDiagnosis::Kind;

namespace {

constexpr std::uint64_t world_id = 1;
constexpr std::uint64_t tp_id = 2;  // of ranks 0 and 1
constexpr std::uint64_t pp_id = 3;  // of ranks 1, 2 and 3

/// Four ranks on two machines, all computing after their fourth call on the world.
WorldState four_ranks() {
  WorldState world;
  world.groups[world_id] = {"world", {0, 1, 2, 3}};
  world.groups[tp_id] = {"tp", {0, 1}};
  world.groups[pp_id] = {"pp", {1, 2, 3}};
  for (int rank = 0; rank < 4; ++rank) {
    RankState state{.host = rank < 2 ? "node0" : "node1", .pid = 100 + rank, .is_known = true};
    state.beat = Beat{.collectives = {{world_id, {4}}, {tp_id, {2}}, {pp_id, {0}}},
                      .activity = "step 5",
                      .activity_s = 1};
    world.ranks.push_back(std::move(state));
  }
  return world;
}

/// Lets a rank block in a call, which counts as called.
void block(WorldState& world, int rank, ToldCall call) {
  call.site = "step.cpp:7";
  Beat& beat = *world.ranks[static_cast<std::size_t>(rank)].beat;
  if (is_collective(call.operation)) {
    beat.collectives[call.group].calls = call.sequence;
  }
  beat.waiting = call;
  beat.last = call;
}

ToldCall world_call(Operation operation, double since_s, std::int64_t bytes = 8) {
  return {
      .operation = operation, .group = world_id, .sequence = 5, .bytes = bytes, .since_s = since_s};
}

ToldCall message(Operation operation, int peer, double since_s) {
  return {.operation = operation,
          .group = pp_id,
          .sequence = 1,
          .bytes = 64,
          .peer = peer,
          .since_s = since_s};
}

std::vector<int> suspects(const std::optional<HangDiagnosis>& verdict) {
  std::vector<int> ranks;
  if (verdict) {
    for (const auto& one : verdict->suspects) {
      ranks.push_back(one.rank);
    }
  }
  return ranks;
}

bool says(const std::optional<HangDiagnosis>& verdict, const std::string& text) {
  return verdict && verdict->reason.find(text) != std::string::npos;
}

const WatchdogLimits limits{.deadline_s = 10, .silence_s = 5};

}  // namespace

TEST_CASE("a run that goes on is not diagnosed", "[server]") {
  WorldState world = four_ranks();
  CHECK_FALSE(analyse_hang(world, limits));
  for (int rank = 0; rank < 3; ++rank) {
    block(world, rank, world_call(Operation::all_reduce, 9));
  }
  world.ranks[3].silent_s = 4;
  CHECK_FALSE(analyse_hang(world, limits));
  CHECK_FALSE(analyse_hang(WorldState{}, limits));
  world.ranks[2].is_known = false;  // a firewall: nothing was ever heard of it
  world.ranks[2].beat.reset();
  world.ranks[2].silent_s = 1000;
  CHECK_FALSE(analyse_hang(world, limits));
}

TEST_CASE("who does not come to a collective is named with those who wait", "[server]") {
  WorldState world = four_ranks();
  for (const int rank : {0, 1, 3}) {
    block(world, rank, world_call(Operation::all_reduce, rank == 1 ? 10.5 : 3));
  }
  const auto verdict = analyse_hang(world, limits);
  REQUIRE(verdict);
  CHECK(verdict->kind == Kind::late);
  CHECK(suspects(verdict) == std::vector{2});
  CHECK(verdict->waiting == std::vector{0, 1, 3});
  CHECK(verdict->code() == ExitCode::hang);
  CHECK(verdict->bad_hosts().empty());
  CHECK(says(verdict, "rank 2 on node1 has not come"));
  CHECK(says(verdict, "step 5"));
  CHECK(says(verdict, "ranks 0-1, 3 wait in all_reduce #5 of 'world' (8 bytes, step.cpp:7)"));
}

TEST_CASE("who waits for whom is followed to its end", "[server]") {
  // 3 waits for a message of 2, which waits for one of 1, which waits in tp for 0, which computes.
  WorldState world = four_ranks();
  block(world, 3, message(Operation::recv, 1, 20));
  block(world, 2, message(Operation::recv, 0, 19));
  block(world, 1,
        {.operation = Operation::all_gather, .group = tp_id, .sequence = 3, .since_s = 18});
  const auto verdict = analyse_hang(world, limits);
  CHECK(suspects(verdict) == std::vector{0});
  CHECK(verdict->waiting == std::vector{1, 2, 3});
  CHECK(says(verdict, "rank 3 waits in recv #1 of 'pp', from rank 2 (64 bytes"));
}

TEST_CASE("a machine of which no rank is left is to blame, not its ranks", "[server]") {
  WorldState world = four_ranks();
  world.ranks[3].is_away = world.ranks[3].has_ended = true;
  CHECK(analyse_hang(world, limits)->kind == Kind::ended);  // rank 2 beside it lives
  CHECK(analyse_hang(world, limits)->code() == ExitCode::hang);
  world.ranks[2].is_away = true;  // and may come back: rank 3 does not
  const auto verdict = analyse_hang(world, limits);
  REQUIRE(verdict);
  CHECK(verdict->kind == Kind::host_ended);
  CHECK(suspects(verdict) == std::vector{2, 3});
  CHECK(verdict->code() == ExitCode::node_fault);
  CHECK(verdict->bad_hosts() == std::vector<std::string>{"node1"});
  CHECK(says(verdict, "as have all ranks on its machine"));
  world.ranks[3].has_ended = false;  // nobody is gone for good
  CHECK_FALSE(analyse_hang(world, limits));
  // One rank on a machine may as well have called exit; and where all are on one, it is not that.
  for (RankState& state : world.ranks) {
    state.host = "node0";
  }
  world.ranks[3].has_ended = true;
  CHECK(analyse_hang(world, limits)->kind == Kind::ended);
  world.ranks[3].host = "node1";
  CHECK(analyse_hang(world, limits)->kind == Kind::ended);
}

TEST_CASE("several may be late", "[server]") {
  WorldState world = four_ranks();
  block(world, 0, world_call(Operation::barrier, 11));
  CHECK(suspects(analyse_hang(world, limits)) == std::vector{1, 2, 3});
}

TEST_CASE("a rank in another call of the same number has taken another branch", "[server]") {
  WorldState world = four_ranks();
  for (int rank = 0; rank < 4; ++rank) {
    block(world, rank, world_call(rank == 1 ? Operation::barrier : Operation::all_reduce, 0.1));
  }
  auto verdict = analyse_hang(world, limits);
  REQUIRE(verdict);
  CHECK(verdict->kind == Kind::collective_mismatch);
  CHECK(suspects(verdict) == std::vector{1});
  CHECK(says(verdict, "rank 1 on node0 is in barrier #5 of 'world'"));

  block(world, 1, world_call(Operation::all_reduce, 0.1, 16));  // of other bytes
  CHECK(suspects(analyse_hang(world, limits)) == std::vector{1});

  block(world, 1, world_call(Operation::all_reduce, 0.1));
  CHECK_FALSE(analyse_hang(world, limits));
  for (int rank = 0; rank < 4; ++rank) {  // whose parts differ in size by right
    block(world, rank, world_call(Operation::all_gather, 0.1, 8 * rank));
  }
  CHECK_FALSE(analyse_hang(world, limits));
}

TEST_CASE("calls that were not the same are found when they got through", "[server]") {
  WorldState world = four_ranks();
  const auto tell = [&](int rank, CallsDigest before, CallsDigest now) {
    world.ranks[static_cast<std::size_t>(rank)].beat->collectives[world_id] = {70, {{before, now}}};
  };
  tell(0, {32, 7}, {64, 8});
  tell(1, {32, 7}, {64, 8});
  tell(2, {0, 0}, {32, 7});  // a little after
  tell(3, {64, 8}, {96, 9});
  CHECK_FALSE(analyse_hang(world, limits));
  tell(1, {32, 7}, {64, 5});
  const auto verdict = analyse_hang(world, limits);
  REQUIRE(verdict);
  CHECK(verdict->kind == Kind::collective_mismatch);
  CHECK(suspects(verdict) == std::vector{1});
  CHECK(says(verdict, "'world' among #33 to #64"));
  tell(3, {64, 5}, {96, 9});
  CHECK(suspects(analyse_hang(world, limits)) == std::vector{0});
  tell(3, {96, 9}, {128, 3});  // one against one: nobody knows who is right
  CHECK(suspects(analyse_hang(world, limits)) == std::vector{0, 1});
}

TEST_CASE("ranks that wait for each other on different communicators", "[server]") {
  WorldState world = four_ranks();
  for (const int rank : {0, 2, 3}) {
    block(world, rank, world_call(Operation::all_reduce, 11));
  }
  block(world, 1,
        {.operation = Operation::all_reduce, .group = tp_id, .sequence = 3, .since_s = 11});
  const auto verdict = analyse_hang(world, limits);
  REQUIRE(verdict);
  CHECK(verdict->kind == Kind::collective_mismatch);
  CHECK(suspects(verdict) == std::vector{1});
  CHECK(verdict->waiting == std::vector{0, 2, 3});
}

TEST_CASE("all have come and nothing happens", "[server]") {
  WorldState world = four_ranks();
  for (int rank = 0; rank < 4; ++rank) {
    block(world, rank, world_call(Operation::all_reduce, rank == 2 ? 12 : 11));
  }
  const auto verdict = analyse_hang(world, limits);
  CHECK(suspects(verdict) == std::vector{2});
  CHECK(says(verdict, "all have come"));
}

TEST_CASE("a rank that has ended is told from one that said good-bye", "[server]") {
  WorldState world = four_ranks();
  world.ranks[3].has_left = true;
  CHECK_FALSE(analyse_hang(world, limits));
  world.ranks[1].has_ended = true;
  block(world, 0, world_call(Operation::all_reduce, 0.5));
  const auto verdict = analyse_hang(world, limits);
  REQUIRE(verdict);
  CHECK(verdict->kind == Kind::ended);
  CHECK(suspects(verdict) == std::vector{1});
  CHECK(verdict->waiting == std::vector{0});
  CHECK(verdict->code() == ExitCode::hang);
  CHECK(says(verdict, "rank 1 on node0 has ended without a word"));
  CHECK(says(verdict, "it was outside any call, as it said last (step 5 for 1 s"));  // not of now
}

TEST_CASE("a silent rank is stopped, or its machine is gone", "[server]") {
  WorldState world = four_ranks();
  block(world, 2, world_call(Operation::all_reduce, 1));
  world.ranks[2].silent_s = 6;
  auto verdict = analyse_hang(world, limits);
  REQUIRE(verdict);
  CHECK(verdict->kind == Kind::stopped);
  CHECK(verdict->code() == ExitCode::hang);
  CHECK(verdict->bad_hosts() == std::vector<std::string>{"node1"});
  CHECK(says(verdict, "rank 2 on node1 has given no sign of life for 6 s"));
  CHECK(says(verdict, "it was in all_reduce #5 of 'world'"));

  for (const int rank : {2, 3}) {
    world.ranks[static_cast<std::size_t>(rank)].silent_s = 6;
    world.ranks[static_cast<std::size_t>(rank)].is_reachable = false;
  }
  verdict = analyse_hang(world, limits);
  CHECK(verdict->kind == Kind::unreachable);
  CHECK(verdict->code() == ExitCode::node_fault);
  CHECK(suspects(verdict) == std::vector{2, 3});
  CHECK(verdict->bad_hosts() == std::vector<std::string>{"node1"});
}

TEST_CASE("what ranks say of themselves is not believed beyond its shape", "[server]") {
  WorldState world = four_ranks();
  block(world, 0, message(Operation::recv, 77, 20));  // no such peer
  block(world, 1, {.operation = Operation::barrier, .group = 99, .sequence = 1, .since_s = 20});
  block(world, 2, message(Operation::send, -5, 30));
  CHECK(analyse_hang(world, limits));
}

TEST_CASE("ranks whose devices are in another call are gone along", "[server]") {
  WorldState world = four_ranks();
  // All have called the reduction; the device of rank 1 is still in a message from rank 2, which
  // computes.
  for (const int rank : {0, 1, 3}) {
    block(world, rank, world_call(Operation::all_reduce, rank == 0 ? 11 : 4));
  }
  world.ranks[2].beat->collectives[world_id].calls = 5;
  world.ranks[1].beat->waiting = message(Operation::recv, 1, 4);
  const auto verdict = analyse_hang(world, limits);
  REQUIRE(verdict);
  CHECK(suspects(verdict) == std::vector{2});
  CHECK(says(verdict, "rank 2 on node1 has not come"));
}

TEST_CASE("who notices that communication failed is not to blame if somebody else is silent",
          "[server]") {
  WorldState world = four_ranks();
  world.ranks[0].beat->fault = "NCCL: communicator 'dp' failed (remote process exited)";
  world.ranks[0].beat->fault_s = 2;
  CHECK_FALSE(analyse_hang(world, limits));  // the dead may still show
  world.ranks[0].beat->fault_s = 9;
  auto verdict = analyse_hang(world, limits);
  REQUIRE(verdict);
  CHECK(verdict->kind == Kind::faulty);
  CHECK(suspects(verdict) == std::vector{0});
  CHECK(verdict->code() == ExitCode::node_fault);
  CHECK(verdict->bad_hosts().empty());
  CHECK(says(verdict, "rank 0 on node0 cannot communicate any more: NCCL: communicator 'dp'"));
  const WatchdogLimits patient{.deadline_s = 100, .silence_s = 60};
  world.ranks[3].silent_s = 7;
  world.ranks[3].is_reachable = false;
  verdict = analyse_hang(world, patient);
  REQUIRE(verdict);
  CHECK(verdict->kind == Kind::unreachable);
  CHECK(suspects(verdict) == std::vector{3});
  CHECK(verdict->bad_hosts() == std::vector<std::string>{"node1"});
  world.ranks[0].has_left = true;  // it says so itself
  CHECK_FALSE(analyse_hang(world, patient));
}
