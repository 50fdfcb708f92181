// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "healthy_ranks.hpp"
#include "records.hpp"
#include "transport_check.hpp"

#include <catch2/catch_test_macros.hpp>

namespace fourfold::doctor {
namespace {

std::vector<RankSpeed> even_speeds(std::size_t ranks) {
  return std::vector<RankSpeed>(ranks, {.products_gflops = 50, .triad_gb_s = 10, .cores_had = 1});
}

TEST_CASE("the node of a slow rank is bad, and the reason is told", "[speeds]") {
  const Ranks ranks = healthy_ranks(4, 2);
  std::vector<RankSpeed> speeds = even_speeds(8);
  CHECK_FALSE(has_slow_ones(speeds));
  CHECK(products_check(ranks, speeds, DType::f32).status() == Status::ok);
  speeds[6].products_gflops = 30;
  speeds[7].products_gflops = 20;
  CHECK(has_slow_ones(speeds));
  const Check hot = products_check(ranks, speeds, DType::bf16);
  CHECK(hot.bad_nodes() == Names{"node3"});
  CHECK(finds(hot, "rank 7 on node3 has 20.0 GFLOP/s, the median 50.0"));
  CHECK(finds(hot, "heat"));
  CHECK(bandwidth_check(ranks, speeds).status() == Status::ok);
  speeds[7].cores_had = 0.4;
  CHECK(finds(products_check(ranks, speeds, DType::f32), "something else runs there"));
  speeds[0].triad_gb_s = 1;
  CHECK(bandwidth_check(ranks, speeds).bad_nodes() == Names{"node0"});
}

TEST_CASE("who is slow by its binding does not make a node bad, unless all share cores alike",
          "[speeds]") {
  Ranks ranks = healthy_ranks(3, 2);
  std::vector<RankSpeed> speeds = even_speeds(6);
  speeds[2].products_gflops = speeds[3].products_gflops = 25;
  ranks.facts[3].cores = "0";
  CHECK(products_check(ranks, speeds, DType::f32).status() == Status::warning);
  CHECK(finds(products_check(ranks, speeds, DType::f32), "its binding"));
  for (RankFacts& facts : ranks.facts) {
    facts.cores = "0";
  }
  CHECK(products_check(ranks, speeds, DType::f32).bad_nodes() == Names{"node1"});
}

TEST_CASE("ranks of nodes that have more of them are not blamed", "[speeds]") {
  Ranks ranks = healthy_ranks(2, 3);
  ranks.nodes[3] = "node0";
  std::vector<RankSpeed> speeds = even_speeds(6);
  speeds[0].triad_gb_s = 5;
  const Check check = bandwidth_check(ranks, speeds);
  CHECK(check.status() == Status::warning);
  CHECK(check.bad_nodes().empty());
}

TEST_CASE("of two measurements the better counts", "[speeds]") {
  const RankSpeed better = better_of({.products_gflops = 1, .triad_gb_s = 5, .cores_had = 0.5},
                                     {.products_gflops = 2, .triad_gb_s = 4, .cores_had = 0.4});
  CHECK(better.products_gflops == 2);
  CHECK(better.triad_gb_s == 5);
  CHECK(better.cores_had == 0.5);
  std::vector<LineSpeed> first{{.axis = "tp",
                                .ranks = {0, 1},
                                .latency_s = 2,
                                .bus_gb_s = 8,
                                .bytes = 64,
                                .wrong_elements = 1}};
  const std::vector<LineSpeed> second{{.axis = "tp",
                                       .ranks = {0, 1},
                                       .latency_s = 1,
                                       .bus_gb_s = 4,
                                       .bytes = 1024,
                                       .wrong_elements = 0}};
  const std::vector<LineSpeed> lines = better_of(first, second);
  CHECK(lines[0].latency_s == 1);
  CHECK(lines[0].bytes == 1024);  // of the larger message, whatever it was
  CHECK(lines[0].bus_gb_s == 4);
  CHECK(lines[0].wrong_elements == 1);
  const std::vector<LinkSpeed> links = better_of(std::vector<LinkSpeed>{{0, 1, 3}, {1, 0, 1}},
                                                 std::vector<LinkSpeed>{{0, 1, 2}, {1, 0, 4}});
  CHECK(links[0].gb_s == 3);
  CHECK(links[1].gb_s == 4);
}

LineSpeed line(const std::string& axis, std::vector<int> ranks, double bus_gb_s) {
  return {.axis = axis,
          .ranks = std::move(ranks),
          .latency_s = 1e-6,
          .bus_gb_s = bus_gb_s,
          .bytes = 1 << 20,
          .wrong_elements = 0};
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
  for (RankFacts& facts : ranks.facts) {
    facts.cores = "0";
  }
  const std::vector<LineSpeed> lines{line("tp", {0, 1}, 10), line("tp", {2, 3}, 10),
                                     line("tp", {4, 5}, 4)};
  const std::vector<Check> checks = transport_checks(ranks, lines);
  CHECK(checks[0].status() == Status::warning);
  CHECK(checks[0].bad_nodes().empty());
  const std::vector<LinkSpeed> links{{0, 1, 8}, {1, 0, 8}, {1, 2, 1}, {2, 1, 1}, {0, 2, 1}};
  CHECK(network_check(ranks, links).status() == Status::warning);
}

TEST_CASE("a node is judged by the best of its links", "[transport]") {
  const Ranks ranks = healthy_ranks(4, 1);
  // node2's adapter is slow: all of its links are, and only those.
  const std::vector<LinkSpeed> links{{0, 1, 9}, {1, 2, 1}, {2, 3, 1}, {3, 0, 9},
                                     {0, 2, 1}, {1, 3, 9}, {2, 0, 1}, {3, 1, 9}};
  CHECK(best_link_of_nodes(links, 4) == std::vector<double>{9, 9, 1, 9});
  CHECK(network_check(ranks, links).bad_nodes() == Names{"node2"});
  CHECK(network_check(healthy_ranks(1, 2), {}).status() == Status::ok);
}

}  // namespace
}  // namespace fourfold::doctor
