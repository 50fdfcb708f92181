// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "healthy_ranks.hpp"
#include "node_facts.hpp"
#include "transport.hpp"

#include <catch2/catch_test_macros.hpp>

namespace fourfold::doctor {
namespace {

Ranks even_ranks(int nodes, int per_node) {
  Ranks ranks = healthy_ranks(nodes, per_node);
  for (RankFacts& facts : ranks) {
    keep_better(50, 10, 1, facts);
  }
  return ranks;
}

TEST_CASE("the node of a slow rank is bad, and the reason is told", "[speeds]") {
  Ranks ranks = even_ranks(4, 2);
  CHECK_FALSE(has_slow_ones(ranks));
  CHECK(products_check(ranks, DType::f32).status() == Status::ok);
  ranks[6].products_gflops = 30;
  ranks[7].products_gflops = 20;
  CHECK(has_slow_ones(ranks));
  const Check hot = products_check(ranks, DType::bf16);
  CHECK(hot.bad_nodes() == Names{"node3"});
  CHECK(finds(hot, "rank 7 on node3 has 20.0 GFLOP/s, the median 50.0"));
  CHECK(finds(hot, "heat"));
  CHECK(bandwidth_check(ranks).status() == Status::ok);
  ranks[7].cores_had = 0.4;
  CHECK(finds(products_check(ranks, DType::f32), "something else runs there"));
  ranks[0].triad_gb_s = 1;
  CHECK(bandwidth_check(ranks).bad_nodes() == Names{"node0"});
}

TEST_CASE("who is slow by its binding does not make a node bad, unless all share cores alike",
          "[speeds]") {
  Ranks ranks = even_ranks(3, 2);
  ranks[2].products_gflops = ranks[3].products_gflops = 25;
  ranks[3].cores = "0";
  CHECK(products_check(ranks, DType::f32).status() == Status::warning);
  CHECK(finds(products_check(ranks, DType::f32), "its binding"));
  for (RankFacts& facts : ranks) {
    facts.cores = "0";
  }
  CHECK(products_check(ranks, DType::f32).bad_nodes() == Names{"node1"});
}

TEST_CASE("ranks of nodes that have more of them are not blamed", "[speeds]") {
  Ranks ranks = even_ranks(2, 3);
  ranks[3].node = "node0";
  ranks[0].triad_gb_s = 5;
  const Check check = bandwidth_check(ranks);
  CHECK(check.status() == Status::warning);
  CHECK(check.bad_nodes().empty());
}

TEST_CASE("of two measurements the better counts", "[speeds]") {
  RankFacts better;
  keep_better(1, 5, 0.5, better);
  keep_better(2, 4, 0.4, better);
  CHECK(better.products_gflops == 2);
  CHECK(better.triad_gb_s == 5);
  CHECK(better.cores_had == 0.5);
  std::vector<LineSpeed> first{{.axis = "tp",
                                .ranks = {0, 1},
                                .latency_us = 2,
                                .bus_gb_s = 8,
                                .bytes = 64,
                                .wrong_elements = 1}};
  const std::vector<LineSpeed> second{{.axis = "tp",
                                       .ranks = {0, 1},
                                       .latency_us = 1,
                                       .bus_gb_s = 4,
                                       .bytes = 1024,
                                       .wrong_elements = 0}};
  const std::vector<LineSpeed> lines = better_of(first, second);
  CHECK(lines[0].latency_us == 1);
  CHECK(lines[0].bytes == 1024);  // of the larger message, whatever it was
  CHECK(lines[0].bus_gb_s == 4);
  CHECK(lines[0].wrong_elements == 1);
}

LineSpeed line(const std::string& axis, std::vector<int> ranks, double bus_gb_s) {
  return {.axis = axis,
          .ranks = std::move(ranks),
          .latency_us = 1,
          .bus_gb_s = bus_gb_s,
          .bytes = 1 << 20,
          .wrong_elements = 0};
}

/// Of node0, node1, ...: what each one received, by sender.
std::vector<NodeFacts> linked(const std::vector<std::vector<double>>& received_gb_s) {
  std::vector<NodeFacts> nodes(received_gb_s.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].node = fmt::format("node{}", i);
    nodes[i].received_gb_s = received_gb_s[i];
  }
  return nodes;
}

TEST_CASE("lines are compared with those of their axis on as many nodes", "[transport]") {
  const Ranks ranks = healthy_ranks(3, 2);
  // The one between nodes is slower, as it has to be.
  std::vector<LineSpeed> lines{line("tp", {0, 1}, 10), line("tp", {2, 3}, 10),
                               line("tp", {4, 5}, 4), line("dp", {0, 2}, 2), line("dp", {1, 3}, 2)};
  CHECK(slow_lines(ranks, lines) == std::vector<std::size_t>{2});
  std::vector<Check> checks = transport_checks(ranks, lines);
  REQUIRE(checks.size() == 2);
  CHECK(checks[0].name() == "transport tp");
  CHECK(checks[0].bad_nodes() == Names{"node2"});
  CHECK(finds(checks[0], "ranks 4, 5 on node2"));
  CHECK(checks[1].status() == Status::ok);
  // Several nodes are suspects, not suspects.
  lines[4].bus_gb_s = 0.5;
  checks = transport_checks(ranks, lines);
  CHECK(checks[1].status() == Status::warning);
  CHECK(finds(checks[1], "ranks 1, 3 on node0, node1"));
  lines[4].wrong_elements = 3;
  CHECK(transport_checks(ranks, lines)[1].fails_anyway());
  CHECK(transport_checks(healthy_ranks(1, 1), {}).front().status() == Status::ok);
}

TEST_CASE("where ranks share cores nobody is blamed for slow messages", "[transport]") {
  Ranks ranks = healthy_ranks(3, 2);
  for (RankFacts& facts : ranks) {
    facts.cores = "0";
  }
  const std::vector<LineSpeed> lines{line("tp", {0, 1}, 10), line("tp", {2, 3}, 10),
                                     line("tp", {4, 5}, 4)};
  const std::vector<Check> checks = transport_checks(ranks, lines);
  CHECK(checks[0].status() == Status::warning);
  CHECK(checks[0].bad_nodes().empty());
  CHECK(network_check(ranks, linked({{0, 8, 0}, {8, 0, 1}, {1, 1, 0}})).status() ==
        Status::warning);
}

TEST_CASE("a node is judged by the best of its links", "[transport]") {
  const Ranks ranks = healthy_ranks(4, 1);
  // node2's adapter is slow: all of its links are, and only those.
  const auto nodes = linked({{0, 0, 1, 9}, {9, 0, 0, 9}, {1, 1, 0, 0}, {0, 9, 1, 0}});
  CHECK(best_links(nodes) == std::vector<double>{9, 9, 1, 9});
  CHECK(network_check(ranks, nodes).bad_nodes() == Names{"node2"});
  CHECK(network_check(healthy_ranks(1, 2), linked({{}})).status() == Status::ok);
}

}  // namespace
}  // namespace fourfold::doctor
