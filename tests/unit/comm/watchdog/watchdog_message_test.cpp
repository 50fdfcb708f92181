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

std::vector<Message> one_of_each() {
  return {Hello{12, "node3", 77},
          NewGroup{5, {"dp", {0, 4, 8}}},
          Beat{.collectives = {{5, {99, {{{32, 1}, {64, ~std::uint64_t{0}}}}}},
                               {~std::uint64_t{0}, {1}}},
               .waiting = call,
               .last = {},
               .activity = "saving \"step\" 500\xff",
               .activity_s = 3,
               .fault = "a \"peer\" is gone",
               .fault_s = 2.5},
          Bye{},
          Bye{.ends_all = true},
          Tell{},
          Told{{call, call}, {"main(+0x12)", ""}},
          End{86}};
}

}  // namespace

TEST_CASE("messages come out as they went in", "[watch_message]") {
  for (const Message& message : one_of_each()) {
    const std::string line = line_of(message);
    CHECK(line.back() == '\n');
    CHECK(line.find('\n') == line.size() - 1);
    const auto again = message_of(line);
    REQUIRE(again);
    CHECK(again->index() == message.index());
    CHECK(line_of(*again) == line);
  }
  const Beat beat = std::get<Beat>(*message_of(line_of(one_of_each()[2])));
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
}

TEST_CASE("what is no message is passed over", "[watch_message]") {
  for (const char* text :
       {"", " ", "{}", "[]", "7", "null", "{\"type\":7}", "{\"type\":\"beat\"}",
        "{\"type\":\"end\",\"code\":\"86\"}",
        "{\"type\":\"group\",\"id\":1,\"name\":\"x\",\"ranks\":7}",
        "{\"type\":\"hello\",\"rank\":\"0\",\"host\":\"\",\"pid\":1}", "GET / HTTP/1.1\r"}) {
    CHECK_FALSE(message_of(text));
  }
  // Numbers that are none of ours; the library would make others of them.
  for (const char* const number : {"-1", "1e30", "3.5", "99999999999999999999", "true", "null"}) {
    const auto with = [&](const std::string& head, const std::string& tail) {
      return message_of(head + number + tail).has_value();
    };
    CAPTURE(number);
    CHECK_FALSE(with("{\"type\":\"end\",\"code\":", "}"));
    CHECK_FALSE(with("{\"type\":\"hello\",\"rank\":", ",\"host\":\"\",\"pid\":1}"));
    CHECK_FALSE(with("{\"type\":\"hello\",\"rank\":0,\"host\":\"\",\"pid\":", "}"));
    CHECK_FALSE(with("{\"type\":\"group\",\"id\":", ",\"name\":\"x\",\"ranks\":[0]}"));
    CHECK_FALSE(with("{\"type\":\"group\",\"id\":1,\"name\":\"x\",\"ranks\":[0,", "]}"));
  }
  CHECK_FALSE(message_of("{\"type\":\"end\",\"code\":256}"));
  CHECK_FALSE(message_of("{\"type\":\"hello\",\"rank\":2147483648,\"host\":\"\",\"pid\":1}"));
  CHECK_FALSE(message_of(std::string(100000, '[')));
}

TEST_CASE("damaged lines do no harm", "[watch_message]") {
  std::mt19937 random(7);
  for (const Message& message : one_of_each()) {
    const std::string good = line_of(message);
    for (int round = 0; round < 2000; ++round) {
      std::string line = good;
      for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes) {
        line[random() % line.size()] = static_cast<char>(random());
      }
      line.resize(random() % 8 == 0 ? random() % line.size() : line.size());
      if (const auto read = message_of(line)) {
        CHECK_FALSE(line_of(*read).empty());
      }
    }
  }
}
