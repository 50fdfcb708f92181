// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"
#include "healthy_ranks.hpp"

#include <catch2/catch_test_macros.hpp>

#include <limits>

namespace fourfold::doctor {
namespace {

using Indices = std::vector<std::size_t>;

Indices slow(const std::vector<double>& rates) {
  return slow_ones(rates);
}

TEST_CASE("what is below 0.8 of the median stands out", "[outliers]") {
  CHECK(slow({10, 10, 7.9, 10, 10}) == Indices{2});
  CHECK(slow({10, 10, 8.1, 10, 10}).empty());
  CHECK(slow({10, 10, 100, 10, 10}).empty());  // faster is no harm
  CHECK(slow({3, 10, 10, 10, 2, 10, 10}) == Indices{0, 4});
}

TEST_CASE("few ranks: one has no peers, of two the slower, of four one node's both", "[outliers]") {
  CHECK(slow({}).empty());
  CHECK(slow({1}).empty());
  CHECK(slow({0}).empty());
  CHECK(slow({10, 7}).empty());
  CHECK(slow({10, 6.6}) == Indices{1});
  CHECK(slow({10, 10, 5, 5}) == Indices{2, 3});
  CHECK(slow({10, 5, 5}).empty());  // nobody can tell that most are slow
  CHECK(slow({10, 10, 5}) == Indices{2});
}

TEST_CASE("what could not be measured stands out", "[outliers]") {
  CHECK(slow({10, 0, 10}) == Indices{1});
  CHECK(slow({10, std::numeric_limits<double>::quiet_NaN(), 10, 10}) == Indices{1});
  CHECK(slow({10, std::numeric_limits<double>::infinity()}) == Indices{1});
}

TEST_CASE("the list to exclude has each node once, in the order of their numbers", "[verdict]") {
  std::vector<Check> checks(3, Check("some"));
  CHECK(exclude_list(checks).empty());
  checks[0].fail_nodes({"node10", "node9"}, "slow");
  checks[1].warn("warm");
  checks[2].fail_nodes({"node9", "node09", "gpu2-b", "gpu2-a", "gpu10-a", "node"}, "slower");
  CHECK(exclude_list(checks) ==
        Names{"gpu2-a", "gpu2-b", "gpu10-a", "node", "node09", "node9", "node10"});
}

TEST_CASE("a failure of all nodes comes before bad nodes, and those before warnings", "[verdict]") {
  std::vector<Check> checks(2, Check("some"));
  CHECK(verdict(checks) == ExitCode::finished);
  checks[0].warn("warm");
  CHECK(checks[0].status() == Status::warning);
  CHECK(verdict(checks) == ExitCode::finished);
  checks[0].fail_nodes({"node1"}, "slow");
  CHECK(checks[0].status() == Status::fail);
  checks[0].warn("warm still");
  CHECK(checks[0].status() == Status::fail);
  CHECK(verdict(checks) == ExitCode::node_fault);
  checks[1].fail("full");
  CHECK(verdict(checks) == ExitCode::config);
  CHECK(exclude_list(checks) == Names{"node1"});
}

TEST_CASE("nodes have Slurm's names where those tell hosts apart, else the hosts' own",
          "[verdict]") {
  const Names hosts{"a.site", "a.site", "b.site"};
  CHECK(node_names(hosts, Names{"n1", "n1", "n2"}) == Names{"n1", "n1", "n2"});
  CHECK(node_names(hosts, Names{"n1", "n1", "n1"}) == Names{"a", "a", "b"});  // under mpiexec
  CHECK(node_names(hosts, Names{"", "", ""}) == Names{"a", "a", "b"});
  CHECK(node_names(hosts, Names{"n1", "n2", "n3"}) == Names{"a", "a", "b"});
  CHECK(node_names(Names{"10.0.0.1"}, Names{""}) == Names{"10.0.0.1"});
}

}  // namespace
}  // namespace fourfold::doctor
