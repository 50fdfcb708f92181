// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "watch/court.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <string>
#include <thread>

using namespace fourfold::comm;
using namespace std::chrono_literals;

namespace {

LineConnection connect(const Court& court) {
  auto connection = LineConnection::open("localhost", court.port(), 1000);
  REQUIRE(connection);
  return std::move(*connection);
}

LineConnection introduced(const Court& court, int rank, const std::string& token = "secret") {
  LineConnection connection = connect(court);
  connection.send(line_of(Hello{token, rank, "node" + std::to_string(rank), 7}));
  connection.send(line_of(Beat{.activity = "step 1"}));
  connection.move();
  return connection;
}

template <class Condition>
bool comes(Court& court, std::chrono::milliseconds within, const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!condition(court.state())) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    court.listen(20ms);
  }
  return true;
}

}  // namespace

TEST_CASE("a court hears ranks that know the token", "[court]") {
  Court court(3, "secret");
  const LineConnection one = introduced(court, 1);
  const LineConnection liar = introduced(court, 2, "guess");
  const LineConnection nobody = introduced(court, 3);
  const LineConnection negative = introduced(court, -1);
  LineConnection noise = connect(court);
  noise.send("GET / HTTP/1.1\r\n\r\n");
  noise.move();
  CHECK(comes(court, 5s, [](const WorldState& world) { return world.ranks[1].beat.has_value(); }));
  const WorldState world = court.state();
  CHECK(world.ranks[1].host == "node1");
  CHECK(world.ranks[1].beat->activity == "step 1");
  CHECK_FALSE(world.ranks[0].is_known);
  CHECK_FALSE(world.ranks[2].is_known);
}

TEST_CASE("who hangs up without good-bye has ended, unless it comes back", "[court]") {
  Court court(3, "secret");
  {
    const LineConnection killed = introduced(court, 0);
    const LineConnection cut_off = introduced(court, 1);
    LineConnection leaving = introduced(court, 2);
    leaving.send(line_of(Bye{}));
    leaving.move();
    CHECK(comes(court, 5s, [](const WorldState& world) {
      return world.ranks[0].beat && world.ranks[1].beat && world.ranks[2].has_left;
    }));
  }
  const auto ended = [](const WorldState& world) { return world.ranks[0].has_ended; };
  CHECK_FALSE(comes(court, 500ms, ended));
  const LineConnection again = introduced(court, 1);
  CHECK(comes(court, 10s, ended));
  const WorldState world = court.state();
  CHECK_FALSE(world.ranks[1].has_ended);
  CHECK_FALSE(world.ranks[2].has_ended);
}

TEST_CASE("silence is counted, and a process that stands still is told from a lost machine",
          "[court]") {
  Court court(1, "secret");
  const LineConnection still = introduced(court, 0);
  CHECK(comes(court, 10s, [](const WorldState& world) { return world.ranks[0].silent_s > 4; }));
  CHECK(court.state().ranks[0].is_reachable);  // its machine takes what is sent to it
}

TEST_CASE("communicators of ranks that do not exist are not believed", "[court]") {
  Court court(2, "secret");
  LineConnection one = introduced(court, 0);
  one.send(line_of(NewGroup{7, {"dp", {0, 1}}}));
  one.send(line_of(NewGroup{8, {"tp", {0, 2}}}));
  one.send(line_of(NewGroup{9, {"pp", {-1}}}));
  one.send(line_of(NewGroup{10, {"cp", {}}}));
  one.move();
  CHECK(comes(court, 5s, [](const WorldState& world) { return world.groups.contains(10); }));
  const WorldState world = court.state();
  CHECK(world.groups.at(7).world_ranks.size() == 2);
  CHECK_FALSE(world.groups.contains(8));
  CHECK_FALSE(world.groups.contains(9));
}

TEST_CASE("ranks are asked and answer", "[court]") {
  Court court(2, "secret");
  LineConnection zero = introduced(court, 0);
  const LineConnection silent = introduced(court, 1);
  CHECK(comes(court, 5s,
              [](const WorldState& world) { return world.ranks[0].beat && world.ranks[1].beat; }));
  court.tell_all(Tell{});
  court.listen(20ms);
  zero.move();
  const auto line = zero.next();
  REQUIRE(line);
  CHECK(std::holds_alternative<Tell>(*message_of(*line)));
  zero.send(line_of(Told{{}, {"main+0x1"}}));
  zero.move();
  CHECK(comes(court, 5s, [&](const WorldState&) { return court.answers().contains(0); }));
  CHECK_FALSE(court.all_have_answered());
  CHECK(court.answers().at(0).stack.front() == "main+0x1");
  CHECK(report_of(court.state(), {}, court.answers()).find("main+0x1") != std::string::npos);
}

TEST_CASE("lines without end close a connection", "[court]") {
  Court court(1, "secret");
  LineConnection flood = introduced(court, 0);
  CHECK(comes(court, 5s, [](const WorldState& world) { return world.ranks[0].beat.has_value(); }));
  const std::string much(std::size_t{1} << 20, 'x');
  for (int piece = 0; piece < 64 && !flood.is_closed(); ++piece) {
    flood.send(much);
    flood.move();
    court.listen(5ms);
  }
  CHECK(flood.is_closed());
}
