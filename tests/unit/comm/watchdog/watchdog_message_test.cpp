// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "watchdog/message.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

using namespace fourfold::comm;

namespace {

const ToldCall call{.operation = Operation::recv,
                    .group = ~std::uint64_t{0},
                    .sequence = 7,
                    .bytes = std::int64_t{1} << 40,
                    .peer = 3,
                    .site = "step.cpp:12",
                    .since_s = 0.25,
                    .is_over = true};

RankMessage with_beat() {
  return {.rank = 12,
          .host = "node3",
          .pid = 77,
          .groups = {{5, {"dp", {0, 4, 8}}}},
          .beat = Beat{.collectives = {{5, {99, {{{32, 1}, {64, ~std::uint64_t{0}}}}}},
                                       {~std::uint64_t{0}, {1}}},
                       .waiting = call,
                       .last = {},
                       .activity = "saving \"step\" 500\xff",
                       .activity_s = 3,
                       .fault = "a \"peer\" is gone",
                       .fault_s = 2.5}};
}

std::vector<RankMessage> one_of_each() {
  return {{.rank = 12, .host = "node3", .pid = 77},
          with_beat(),
          {.rank = 1, .leaves = true},
          {.rank = 1, .leaves = true, .ends_all = true},
          {.rank = 1, .answers = true, .calls = {call, call}, .stack = {"main(+0x12)", ""}}};
}

void check_line(const std::string& line) {
  CHECK(line.back() == '\n');
  CHECK(line.find('\n') == line.size() - 1);
}

/// A line of a rank, of which some are given.
std::string rank_line(const std::string& rank, const std::string& pid = "1",
                      const std::string& groups = "[]", const std::string& beat = "null") {
  return R"({"rank":)" + rank + R"(,"host":"","pid":)" + pid + R"(,"groups":)" + groups +
         R"(,"beat":)" + beat +
         R"(,"leaves":false,"ends_all":false,"answers":false,"calls":[],"stack":[]})";
}

}  // namespace

TEST_CASE("messages come out as they went in", "[watch_message]") {
  for (const RankMessage& message : one_of_each()) {
    const std::string line = line_of(message);
    check_line(line);
    const auto again = rank_message_of(line);
    REQUIRE(again);
    CHECK(line_of(*again) == line);
    CHECK_FALSE(server_message_of(line));
  }
  for (const ServerMessage& message : {ServerMessage{}, ServerMessage{86}}) {
    const std::string line = line_of(message);
    check_line(line);
    const auto again = server_message_of(line);
    REQUIRE(again);
    CHECK(again->end_code == message.end_code);
    CHECK_FALSE(rank_message_of(line));
  }
  const RankMessage told = *rank_message_of(line_of(with_beat()));
  CHECK(told.rank == 12);
  CHECK(told.host == "node3");
  CHECK(told.pid == 77);
  CHECK(told.groups.at(5).name == "dp");
  CHECK(told.groups.at(5).world_ranks == std::vector{0, 4, 8});
  const Beat beat = *told.beat;
  REQUIRE(beat.waiting);
  CHECK(beat.waiting->group == call.group);
  CHECK(beat.waiting->bytes == call.bytes);
  CHECK(beat.waiting->site == call.site);
  CHECK(beat.collectives.at(5).calls == 99);
  CHECK(beat.collectives.at(5).digests[1].calls == 64);
  CHECK(beat.collectives.at(5).digests[1].digest == ~std::uint64_t{0});
  CHECK_FALSE(beat.last);
  CHECK(beat.fault == "a \"peer\" is gone");
  CHECK(beat.fault_s == 2.5);
  const RankMessage answer = *rank_message_of(line_of(one_of_each().back()));
  CHECK(answer.calls.size() == 2);
  CHECK(answer.stack == std::vector<std::string>{"main(+0x12)", ""});
}

TEST_CASE("what is no message is passed over", "[watch_message]") {
  CHECK(rank_message_of(rank_line("0")));
  for (const std::string& text :
       {std::string(), std::string(" "), std::string("{}"), std::string("[]"), std::string("7"),
        std::string("null"), std::string("{\"rank\":7}"), std::string("{\"end\":\"86\"}"),
        rank_line("0", "1", "[]", "{}"), rank_line("\"0\""),
        rank_line("0", "1", R"([{"id":1,"name":"x","ranks":7}])"), std::string("GET / HTTP/1.1\r"),
        std::string(100000, '[')}) {
    CHECK_FALSE(rank_message_of(text));
    CHECK_FALSE(server_message_of(text));
  }
  // Numbers that are none of ours; the library would make others of them.
  for (const std::string number : {"-1", "1e30", "3.5", "99999999999999999999", "true", "null"}) {
    CAPTURE(number);
    CHECK((number == "null" || !server_message_of("{\"end\":" + number + "}")));
    CHECK_FALSE(rank_message_of(rank_line(number)));
    CHECK_FALSE(rank_message_of(rank_line("0", number)));
    CHECK_FALSE(rank_message_of(
        rank_line("0", "1", R"([{"id":)" + number + R"(,"name":"x","ranks":[0]}])")));
    CHECK_FALSE(rank_message_of(
        rank_line("0", "1", R"([{"id":1,"name":"x","ranks":[0,)" + number + "]}]")));
  }
  CHECK_FALSE(server_message_of("{\"end\":256}"));
  CHECK_FALSE(rank_message_of(rank_line("2147483648")));
}

TEST_CASE("damaged lines do no harm", "[watch_message]") {
  std::mt19937 random(7);
  std::vector<std::string> lines{line_of(ServerMessage{}), line_of(ServerMessage{86})};
  for (const RankMessage& message : one_of_each()) {
    lines.push_back(line_of(message));
  }
  for (const std::string& good : lines) {
    for (int round = 0; round < 2000; ++round) {
      std::string line = good;
      for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes) {
        line[random() % line.size()] = static_cast<char>(random());
      }
      line.resize(random() % 8 == 0 ? random() % line.size() : line.size());
      if (const auto read = rank_message_of(line)) {
        CHECK_FALSE(line_of(*read).empty());
      }
      if (const auto read = server_message_of(line)) {
        CHECK_FALSE(line_of(*read).empty());
      }
    }
  }
}
