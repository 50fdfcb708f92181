// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "examination.hpp"
#include "healthy_ranks.hpp"
#include "node_facts.hpp"
#include "records.hpp"

#include <fourfold/base/error.hpp>

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

namespace fourfold::doctor {
namespace {

/// Of nodes that all see the same.
std::vector<DirectoryFacts> shared_facts(std::size_t nodes) {
  DirectoryFacts facts;
  facts.probed = "/work";
  facts.has_links = true;
  facts.bytes = 64'000'000;
  facts.write_s = facts.read_s = 0.1;
  facts.free_bytes = 1'000'000'000;
  facts.free_files = 1000;
  facts.sees_first = facts.sees_second = true;
  std::vector<DirectoryFacts> all(nodes, facts);
  for (std::size_t i = 0; i < nodes; ++i) {
    all[i].node = fmt::format("node{}", i);
  }
  return all;
}

Check check_of(const std::vector<DirectoryFacts>& facts, const Directory& directory) {
  return directory_check(directory, facts);
}

const Directory checkpoints{.key = "checkpoint.dir", .path = "/work"};

TEST_CASE("nodes on another file system than most are found, the first among them",
          "[directories]") {
  CHECK(strangers(shared_facts(4)) == Names{});
  std::vector<DirectoryFacts> facts = shared_facts(4);
  facts[2].sees_first = facts[2].sees_second = false;
  CHECK(strangers(facts) == Names{"node2"});
  // The first node itself has something of its own.
  facts = shared_facts(4);
  facts[0].sees_second = false;
  for (const std::size_t node : {1U, 2U, 3U}) {
    facts[node].sees_first = false;
  }
  CHECK(strangers(facts) == Names{"node0"});
  // Everyone has.
  facts = shared_facts(4);
  for (std::size_t node = 0; node < 4; ++node) {
    facts[node].sees_first = node == 0;
    facts[node].sees_second = node == 1;
  }
  CHECK(strangers(facts) == std::nullopt);
  // Of two that differ nobody can tell which is right.
  facts.resize(2);
  CHECK(strangers(facts) == std::nullopt);
  CHECK(strangers(shared_facts(1)) == Names{});
}

TEST_CASE("a directory that is not shared fails; a node that is apart is bad", "[directories]") {
  std::vector<DirectoryFacts> facts = shared_facts(3);
  CHECK(check_of(facts, checkpoints).status() == Status::ok);
  facts[2].sees_first = facts[2].sees_second = false;
  CHECK(check_of(facts, checkpoints).bad_nodes() == Names{"node2"});
  facts[1].sees_first = false;
  facts[0].sees_second = false;
  const Check check = check_of(facts, checkpoints);
  CHECK(check.fails_anyway());
  CHECK(finds(check, "not a shared file system"));
  // What every node has of its own need not be seen.
  const Directory own{
      .key = "checkpoint.node_local_dir", .path = "/work", .use = Directory::Use::node};
  CHECK(check_of(facts, own).status() == Status::ok);
}

TEST_CASE("what fails on few nodes is theirs, on most the run's", "[directories]") {
  std::vector<DirectoryFacts> facts = shared_facts(3);
  facts[1].problem = "/work: cannot be written (open: Read-only file system)";
  Check check = check_of(facts, checkpoints);
  CHECK(check.bad_nodes() == Names{"node1"});
  CHECK(finds(check, "node1: /work: cannot be written"));
  facts[2].problem = facts[1].problem;
  check = check_of(facts, checkpoints);
  CHECK(check.fails_anyway());
  CHECK(check.bad_nodes().empty());
  // Only rank 0 writes there.
  const Directory logs{.key = "log.dir", .path = "/work", .use = Directory::Use::first_rank};
  CHECK(check_of(facts, logs).status() == Status::ok);
  facts[0].problem = facts[1].problem;
  CHECK(check_of(facts, logs).fails_anyway());
}

TEST_CASE("room is needed for what a run keeps", "[directories]") {
  Directory directory = checkpoints;
  directory.needed_bytes = 2'000'000'000;
  Check check = check_of(shared_facts(2), directory);
  CHECK(check.status() == Status::warning);
  CHECK(finds(check, "free in /work, and the run needs"));
  directory.least_bytes = 2'000'000'000;
  CHECK(check_of(shared_facts(2), directory).fails_anyway());
  directory.use = Directory::Use::node;
  std::vector<DirectoryFacts> facts = shared_facts(3);
  facts[0].free_bytes = facts[1].free_bytes = 3'000'000'000;
  CHECK(check_of(facts, directory).bad_nodes() == Names{"node2"});
  Directory many = checkpoints;
  many.needed_files = 1001;
  CHECK(finds(check_of(shared_facts(2), many), "inodes"));
}

TEST_CASE("no links, slow disks and other data are told", "[directories]") {
  std::vector<DirectoryFacts> facts = shared_facts(3);
  facts[1].has_links = false;
  CHECK(finds(check_of(facts, checkpoints), "link()"));
  facts = shared_facts(3);
  facts[1].write_s = 1;
  CHECK(finds(check_of(facts, checkpoints), "node1 is slower"));
  const Directory data{.key = "data.train", .path = "tokens", .use = Directory::Use::data};
  facts = shared_facts(3);
  facts[1].has_links = false;
  CHECK(check_of(facts, data).status() == Status::ok);
  facts[1].tokens = 7;
  CHECK(finds(check_of(facts, data), "node1 sees another number of tokens than node0"));
}

TEST_CASE("a clock is wrong against the median, whoever's it is", "[clocks]") {
  std::vector<NodeFacts> nodes(3);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].node = fmt::format("node{}", i);
  }
  const auto check = [&](double first_s, double second_s, double third_s) {
    nodes[0].clock_offset_s = first_s;
    nodes[1].clock_offset_s = second_s;
    nodes[2].clock_offset_s = third_s;
    return clock_check(nodes);
  };
  CHECK(check(0, 0.01, -0.01).status() == Status::ok);
  CHECK(finds(check(0, 5, 5), "the clock of node0 is 5.0 s behind the others'"));
  CHECK(finds(check(0, 5, 0), "the clock of node1 is 5.0 s ahead of the others'"));
  CHECK(check(0, 0, -100).bad_nodes() == Names{"node2"});
  nodes[1].name_problem = "does not know node0";
  CHECK(finds(names_check(nodes), "node1 does not know node0"));
}

TEST_CASE("records come over as they were sent", "[records]") {
  RankFacts sent = healthy_ranks(1, 1).front();
  sent.has_rdma = true;
  sent.locked_bytes = 65536;
  const auto got = from_text<RankFacts>(to_text(sent));
  CHECK(got.host == sent.host);
  CHECK(got.cores == sent.cores);
  CHECK(got.locked_bytes == 65536);
  CHECK(got.has_rdma);
  NodeFacts node{.node = "node0"};
  node.directories = {{.probed = "/w\xff", .problem = "gone"}};
  const auto back = from_text<NodeFacts>(to_text(node));
  REQUIRE(back.directories.size() == 1);
  CHECK(back.directories[0].problem == "gone");
}

TEST_CASE("records of another version are refused, and are no fault of ours", "[records]") {
  for (const char* text : {R"({"rank": 1})", "{", R"({"rank": 1e999})"}) {
    try {
      from_text<RankFacts>(text);
      FAIL("accepted");
    } catch (const UserError& error) {
      CHECK(error.code() == ExitCode::config);
      CHECK(std::string(error.what()).find("same version") != std::string::npos);
    }
  }
}

TEST_CASE("the report ends with what sbatch takes, the JSON has it as a list", "[report]") {
  Examination found;
  found.ranks = healthy_ranks(2, 1);
  found.nodes.resize(2);
  found.checks.emplace_back("memory").say("plenty");
  CHECK(report(found).ends_with("exit code 0\nexclude:\n"));
  CHECK(nlohmann::json::parse(to_json(found))["exclude"].empty());
  found.checks[0].fail_nodes({"node1", "node0"}, "none");
  CHECK(report(found).ends_with("exit code 85\nexclude: --exclude=node0,node1\n"));
  const auto json = nlohmann::json::parse(to_json(found));
  CHECK(json["exclude"] == nlohmann::json({"node0", "node1"}));
  CHECK(json["exit_code"] == 85);
  CHECK(json["mesh"].is_null());
  CHECK(json["checks"][0]["status"] == "FAIL");
  CHECK(json["ranks"].size() == 2);
}

}  // namespace
}  // namespace fourfold::doctor
