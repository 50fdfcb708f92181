// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "watchdog/watchdog_server.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

using namespace fourfold::comm;
using namespace std::chrono_literals;

namespace {

const std::string secret(secret_size, 's');

LineConnection connect(const WatchdogServer& watchdog_server) {
  auto connection = LineConnection::open("localhost", watchdog_server.port(), 1000);
  REQUIRE(connection);
  return std::move(*connection);
}

RankMessage of_rank(int rank) {
  return {.rank = rank, .host = "node" + std::to_string(rank), .pid = 7};
}

std::string good_bye_of(int rank) {
  RankMessage message = of_rank(rank);
  message.leaves = true;
  return line_of(message);
}

LineConnection introduced(const WatchdogServer& watchdog_server, int rank,
                          const std::string& shown = secret) {
  LineConnection connection = connect(watchdog_server);
  connection.send(opening_of(shown));
  connection.send(line_of(of_rank(rank)));
  RankMessage beat = of_rank(rank);
  beat.beat = Beat{.activity = "step 1"};
  connection.send(line_of(beat));
  connection.move();
  return connection;
}

template <class Condition>
bool comes(WatchdogServer& watchdog_server, std::chrono::milliseconds within,
           const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!condition(watchdog_server.state())) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    watchdog_server.listen(20ms);
  }
  return true;
}

}  // namespace

TEST_CASE("a watchdog server hears ranks that know the secret", "[watchdog_server]") {
  WatchdogServer watchdog_server(3, secret);
  const LineConnection one = introduced(watchdog_server, 1);
  const LineConnection liar =
      introduced(watchdog_server, 2, std::string(secret_size - 1, 's') + 't');
  const LineConnection nobody = introduced(watchdog_server, 3);
  const LineConnection negative = introduced(watchdog_server, -1);
  LineConnection noise = connect(watchdog_server);
  noise.send("GET / HTTP/1.1\r\n\r\n");
  noise.move();
  CHECK(comes(watchdog_server, 30s,
              [](const WorldState& world) { return world.ranks[1].beat.has_value(); }));
  const WorldState world = watchdog_server.state();
  CHECK(world.ranks[1].host == "node1");
  CHECK(world.ranks[1].beat->activity == "step 1");
  CHECK_FALSE(world.ranks[0].is_known);
  CHECK_FALSE(world.ranks[2].is_known);
}

TEST_CASE("who hangs up without good-bye has ended, unless it comes back", "[watchdog_server]") {
  WatchdogServer watchdog_server(3, secret);
  {
    const LineConnection killed = introduced(watchdog_server, 0);
    const LineConnection cut_off = introduced(watchdog_server, 1);
    LineConnection leaving = introduced(watchdog_server, 2);
    leaving.send(good_bye_of(2));
    leaving.move();
    CHECK(comes(watchdog_server, 30s, [](const WorldState& world) {
      return world.ranks[0].beat && world.ranks[1].beat && world.ranks[2].has_left;
    }));
  }
  const auto ended = [](const WorldState& world) { return world.ranks[0].has_ended; };
  CHECK_FALSE(comes(watchdog_server, 500ms, ended));
  const LineConnection again = introduced(watchdog_server, 1);
  CHECK(comes(watchdog_server, 30s, ended));
  const WorldState world = watchdog_server.state();
  CHECK_FALSE(world.ranks[1].has_ended);
  CHECK_FALSE(world.ranks[2].has_ended);
}

TEST_CASE("silence is counted, and a process that stands still is told from a lost machine",
          "[watchdog_server]") {
  WatchdogServer watchdog_server(1, secret);
  const LineConnection still = introduced(watchdog_server, 0);
  CHECK(comes(watchdog_server, 30s,
              [](const WorldState& world) { return world.ranks[0].silent_s > 4; }));
  CHECK(watchdog_server.state().ranks[0].is_reachable);  // its machine takes what is sent to it
}

TEST_CASE("communicators of ranks that do not exist are not believed", "[watchdog_server]") {
  WatchdogServer watchdog_server(2, secret);
  LineConnection one = introduced(watchdog_server, 0);
  const auto tell = [&](std::uint64_t id, const ToldGroup& group) {
    RankMessage message = of_rank(0);
    message.groups[id] = group;
    one.send(line_of(message));
  };
  tell(7, {"dp", {0, 1}});
  tell(8, {"tp", {0, 2}});
  tell(9, {"pp", {-1}});
  tell(10, {"cp", {}});
  one.move();
  CHECK(comes(watchdog_server, 30s,
              [](const WorldState& world) { return world.groups.contains(10); }));
  const WorldState world = watchdog_server.state();
  CHECK(world.groups.at(7).world_ranks.size() == 2);
  CHECK_FALSE(world.groups.contains(8));
  CHECK_FALSE(world.groups.contains(9));
}

TEST_CASE("ranks are asked and answer", "[watchdog_server]") {
  WatchdogServer watchdog_server(2, secret);
  LineConnection zero = introduced(watchdog_server, 0);
  const LineConnection silent = introduced(watchdog_server, 1);
  CHECK(comes(watchdog_server, 30s,
              [](const WorldState& world) { return world.ranks[0].beat && world.ranks[1].beat; }));
  watchdog_server.tell_all({});
  watchdog_server.listen(20ms);
  zero.move();
  const auto line = zero.next();
  REQUIRE(line);
  const auto asked = server_message_of(*line);
  REQUIRE(asked);
  CHECK_FALSE(asked->end_code);
  RankMessage answer = of_rank(0);
  answer.answers = true;
  answer.stack = {"main+0x1"};
  zero.send(line_of(answer));
  zero.move();
  CHECK(comes(watchdog_server, 30s,
              [&](const WorldState&) { return watchdog_server.answers().contains(0); }));
  CHECK_FALSE(watchdog_server.all_have_answered());
  CHECK(watchdog_server.answers().at(0).stack.front() == "main+0x1");
  CHECK(report_of(watchdog_server.state(), {}, watchdog_server.answers()).find("main+0x1") !=
        std::string::npos);
}

TEST_CASE("lines without end close a connection", "[watchdog_server]") {
  WatchdogServer watchdog_server(1, secret);
  LineConnection flood = introduced(watchdog_server, 0);
  CHECK(comes(watchdog_server, 30s,
              [](const WorldState& world) { return world.ranks[0].beat.has_value(); }));
  const std::string much(std::size_t{1} << 20, 'x');
  for (int piece = 0; piece < 64 && !flood.is_closed(); ++piece) {
    flood.send(much);
    flood.move();
    watchdog_server.listen(5ms);
  }
  CHECK(flood.is_closed());
}

namespace {

/// Sends while the other side takes it. @return whether it has closed the connection
bool has_been_closed(WatchdogServer& watchdog_server, LineConnection& stranger,
                     const std::string& words) {
  for (int turn = 0; turn < 2000 && !stranger.is_closed(); ++turn) {
    stranger.send(words);
    stranger.move();
    watchdog_server.listen(20ms);
  }
  return stranger.is_closed();
}

}  // namespace

TEST_CASE("whoever does not begin with the secret is hung up on", "[watchdog_server]") {
  WatchdogServer watchdog_server(2, secret);
  const LineConnection one = introduced(watchdog_server, 1);
  CHECK(
      comes(watchdog_server, 30s, [](const WorldState& world) { return world.ranks[1].is_known; }));
  const std::string hello = line_of(of_rank(0));
  for (const std::string& words :
       {std::string(std::size_t{1} << 16, '\n'), std::string(std::size_t{1} << 16, 'x'),
        secret.substr(0, secret_size / 2) + std::string(100, '\n'), hello + hello,
        "\n" + opening_of(secret) + hello, secret + "x" + hello, std::string(100, '\0')}) {
    LineConnection stranger = connect(watchdog_server);
    CHECK(has_been_closed(watchdog_server, stranger, words));
    CHECK_FALSE(watchdog_server.state().ranks[0].is_known);
  }
  CHECK(watchdog_server.state().ranks[1].silent_s < 60);
}

TEST_CASE("the secret may come in pieces, and nothing but lines counts after it",
          "[watchdog_server]") {
  WatchdogServer watchdog_server(1, secret);
  LineConnection rank = connect(watchdog_server);
  for (const char c : opening_of(secret) + "rubbish\n\n{\"type\": 7}\n" + line_of(of_rank(0))) {
    rank.send(std::string(1, c));
    rank.move();
    watchdog_server.listen(0ms);
  }
  CHECK(
      comes(watchdog_server, 30s, [](const WorldState& world) { return world.ranks[0].is_known; }));
}

TEST_CASE("many strangers keep no rank out, and nobody may say nothing for long",
          "[watchdog_server]") {
  WatchdogServer watchdog_server(2, secret);
  const LineConnection first = introduced(watchdog_server, 0);
  std::vector<LineConnection> many;
  // In parts: a system may let few connections wait to be accepted.
  const auto grow = [&] {
    for (int i = 0; i < 200; ++i) {
      many.push_back(connect(watchdog_server));
      many.back().send(i % 2 == 0 ? "" : secret.substr(0, 5));
      many.back().move();
      if (i % 40 == 0) {
        watchdog_server.listen(50ms);
        watchdog_server.listen(50ms);
      }
    }
  };
  grow();
  grow();
  const LineConnection second = introduced(watchdog_server, 1);
  grow();
  CHECK(comes(watchdog_server, 30s, [](const WorldState& world) {
    return world.ranks[0].beat.has_value() && world.ranks[1].beat.has_value();
  }));
  // All of them in the end: those that came first make room, the others have waited too long.
  const auto all_are_gone = [&](const WorldState&) {
    return std::ranges::all_of(many, [](LineConnection& one) {
      one.move();
      return one.is_closed();
    });
  };
  CHECK(comes(watchdog_server, 60s, all_are_gone));
  CHECK_FALSE(watchdog_server.state().ranks[1].is_away);
}

TEST_CASE("secrets are long, and not the same twice", "[watchdog_server]") {
  const std::string one = new_secret();
  CHECK(one.size() == secret_size);
  CHECK(one.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(one != new_secret());
}

TEST_CASE("many short lines are read in one go", "[watchdog_server]") {
  // Each as the first of what is left, they would be moved as often as there are.
  WatchdogServer watchdog_server(1, secret);
  LineConnection rank = introduced(watchdog_server, 0);
  rank.send(std::string(std::size_t{1} << 20, '\n'));
  while (rank.has_unsent()) {
    rank.move();
    watchdog_server.listen(0ms);
  }
  rank.send(good_bye_of(0));
  rank.move();
  CHECK(
      comes(watchdog_server, 30s, [](const WorldState& world) { return world.ranks[0].has_left; }));
}
