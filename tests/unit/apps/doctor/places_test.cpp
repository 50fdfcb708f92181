// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "environment.hpp"
#include "healthy_ranks.hpp"

#include <catch2/catch_test_macros.hpp>

#include <set>

namespace fourfold::doctor {
namespace {

TEST_CASE("ranks that have all they need are fine", "[places]") {
  const Ranks ranks = healthy_ranks(4, 2);
  const comm::MeshShape mesh{.pp = 2, .dp = 2, .cp = 1, .tp = 2};
  for (const Check& check :
       {launch_check(ranks), mesh_check(ranks, mesh, ""), mesh_check(ranks, std::nullopt, ""),
        cores_check(ranks), memory_check(ranks), limits_check(ranks), versions_check(ranks)}) {
    INFO(check.name());
    CHECK(check.status() == Status::ok);
    CHECK_FALSE(check.summary().empty());
  }
  CHECK(oversubscribed(ranks).empty());
  CHECK(first_ranks(ranks) == std::vector{0, 2, 4, 6});
}

TEST_CASE("another number of ranks than were started fails, uneven nodes are warned of",
          "[places]") {
  Ranks ranks = healthy_ranks(2, 2);
  for (RankFacts& facts : ranks) {
    facts.launched_ranks = 8;
  }
  CHECK(launch_check(ranks).fails_anyway());
  CHECK(finds(launch_check(ranks), "started 8 ranks, but MPI has 4"));
  Ranks uneven = healthy_ranks(2, 2);
  uneven[2].node = "node0";
  CHECK(are_uneven(uneven));
  CHECK(launch_check(uneven).status() == Status::warning);
  Ranks one = healthy_ranks(1, 1);
  one[0].job_tasks = 8;
  CHECK(finds(launch_check(one), "this job has 8 tasks"));
}

TEST_CASE("a group of tp on two nodes is named", "[places]") {
  const Ranks ranks = healthy_ranks(2, 3);
  const Check check = mesh_check(ranks, comm::MeshShape{.dp = 3, .tp = 2}, "");
  CHECK(check.status() == Status::warning);
  CHECK(finds(check, "ranks 2-3 are a group of tp"));
  CHECK(finds(check, "--distribution=block"));
  CHECK(finds(mesh_check(ranks, comm::MeshShape{.tp = 6}, ""), "lower mesh.tp to at most 3"));
  CHECK(mesh_check(ranks, std::nullopt, "mesh.tp = 4 does not fit").fails_anyway());
  // What mesh.dp = "auto" leaves over belongs to no group.
  const Check partly = mesh_check(ranks, comm::MeshShape{.dp = 1, .tp = 2}, "");
  CHECK(partly.status() == Status::ok);
  CHECK(partly.summary().find("4 of 6 ranks are not used") != std::string::npos);
}

TEST_CASE("core lists are those of the kernel", "[places]") {
  CHECK(cores_in("0-3,8") == std::vector{0, 1, 2, 3, 8});
  CHECK(cores_in("5") == std::vector{5});
  CHECK(cores_in("").empty());
  CHECK(cores_in("0-").empty());
  CHECK(cores_in("x").empty());
  CHECK(cores_in("0-99999999").empty());
  const harness::Environment nothing{};
  const RankFacts own = own_facts();
  CHECK_FALSE(cores_in(own.cores).empty());
  CHECK(own.memory_bytes > 0);
  CHECK(own.job_tasks == 0);
  CHECK(own.threads == 1);
}

TEST_CASE("ranks that share cores are named, whatever sets they are bound to", "[places]") {
  Ranks ranks = healthy_ranks(2, 2);
  ranks[3].cores = "0";
  CHECK(oversubscribed(ranks) == std::set{2, 3});
  CHECK(finds(cores_check(ranks), "ranks 2, 3 on node1 compute with 2 threads on 1 core"));
  ranks[3].cores = "0-1";  // the other core is left
  CHECK(oversubscribed(ranks).empty());
  ranks[3].threads = 2;
  CHECK(finds(cores_check(ranks), "ranks 2, 3 on node1 compute with 3 threads on 2 cores"));
  ranks[3].cores = "1";
  CHECK(finds(cores_check(ranks), "rank 3 on node1 computes with 2 threads on 1 core"));
  // Sets that overlap: three ranks, two cores.
  Ranks three = healthy_ranks(1, 3);
  three[2].cores = "0-1";
  CHECK(finds(cores_check(three), "ranks 0, 1, 2 on node0"));
  // Two pairs, each on a core, and one that has room.
  Ranks pairs = healthy_ranks(1, 5);
  pairs[1].cores = "0";
  pairs[3].cores = "2";
  pairs[4].cores = "0-7";
  CHECK(oversubscribed(pairs) == std::set{0, 1, 2, 3});
  // Two hosts that one machine plays.
  Ranks played = healthy_ranks(2, 1);
  CHECK(oversubscribed(played).empty());
  played[1].machine = "node0";
  CHECK(oversubscribed(played) == std::set{0, 1});
  // A system that does not tell.
  Ranks silent = healthy_ranks(1, 2);
  silent[0].cores = silent[1].cores = "";
  CHECK(cores_check(silent).status() == Status::ok);
}

TEST_CASE("a node with less memory than the others, or less free than its ranks need, is bad",
          "[places]") {
  Ranks ranks = healthy_ranks(3, 2);
  ranks[2].memory_bytes = ranks[3].memory_bytes = 48'000'000'000;
  CHECK(memory_check(ranks).bad_nodes() == Names{"node1"});
  Ranks taken = healthy_ranks(3, 2);
  for (RankFacts& facts : taken) {
    facts.needed_bytes = 20'000'000'000;
  }
  CHECK(memory_check(taken).status() == Status::ok);
  taken[4].available_bytes = 39'000'000'000;  // of a group of its own
  CHECK(memory_check(taken).bad_nodes() == Names{"node2"});
  CHECK_FALSE(memory_check(taken).fails_anyway());
}

TEST_CASE("a run that fits nowhere is too large, one that just fits is warned of", "[places]") {
  Ranks ranks = healthy_ranks(2, 2);
  for (RankFacts& facts : ranks) {
    facts.needed_bytes = 28'000'000'000;
  }
  CHECK(memory_check(ranks).status() == Status::warning);
  for (RankFacts& facts : ranks) {
    facts.needed_bytes = 31'000'000'000;
  }
  CHECK(memory_check(ranks).fails_anyway());
  CHECK(memory_check(ranks).bad_nodes().empty());
  for (RankFacts& facts : ranks) {
    facts.available_bytes = facts.memory_bytes = -1;
  }
  CHECK(memory_check(ranks).status() == Status::ok);
}

TEST_CASE("limits that a run meets are told", "[places]") {
  const auto with = [](auto change) {
    Ranks ranks = healthy_ranks(2, 2);
    change(ranks[3]);
    return limits_check(ranks);
  };
  CHECK(finds(with([](RankFacts& f) { f.open_files = 100; }), "rank 3 on node1 may open 100"));
  CHECK(with([](RankFacts& f) { f.open_files = 1024; }).status() == Status::ok);
  CHECK(finds(with([](RankFacts& f) { f.huge_pages = "never"; }), "on node1"));
  CHECK(finds(with([](RankFacts& f) { f.file_bytes = 1; }), "largest size on node1"));
  CHECK(with([](RankFacts& f) { f.locked_bytes = 65536; }).status() == Status::ok);
  CHECK(finds(with([](RankFacts& f) {
                f.locked_bytes = 65536;
                f.has_rdma = true;
              }),
              "locked memory is limited on node1"));
  CHECK(finds(with([](RankFacts& f) {
                f.address_bytes = 10;
                f.needed_bytes = 10;
              }),
              "ulimit -v"));
  CHECK(finds(with([](RankFacts& f) { f.shares_memory = false; }), "no memory in common"));
  Ranks small = healthy_ranks(1, 2);
  small[0].shm_free_bytes = 1000;
  CHECK(finds(limits_check(small), "/dev/shm"));
  small[0].has_shm = false;
  CHECK(finds(limits_check(small), "there is nothing in /dev/shm"));
}

TEST_CASE("versions that differ fail, and say where", "[places]") {
  Ranks ranks = healthy_ranks(3, 1);
  ranks[1].hdf5 = "1.14";
  const Check check = versions_check(ranks);
  CHECK(check.fails_anyway());
  CHECK(finds(check, "HDF5 differs: 1.10 on node0, node2, 1.14 on node1"));
}

}  // namespace
}  // namespace fourfold::doctor
