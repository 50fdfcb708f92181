// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/plan/simulate.hpp>
#include <fourfold/plan/timeline_trace.hpp>
#include <fourfold/schedule/schedule_generators.hpp>

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::plan {
namespace {

nlohmann::json events_of(const std::vector<schedule::Timeline>& timelines) {
  return nlohmann::json::parse(timeline_trace(timelines)).at("traceEvents");
}

schedule::Timeline planned(double link_s) {
  const schedule::Schedule schedule =
      schedule::make_schedule({.name = "zb-v", .stages = 2, .micro_batches = 3});
  schedule::Timeline timeline = simulate(schedule, even_costs(schedule, {2, 2, 2}, link_s));
  timeline.name = "planned \"by\" <me>";
  return timeline;
}

TEST_CASE("a trace has a row per rank and a slice per pass", "[timeline_trace]") {
  std::map<std::string, int> phases;
  std::map<int, double> busy_us;
  for (const nlohmann::json& event : events_of({planned(0)})) {
    ++phases[event.at("ph")];
    CHECK(event.at("pid") == 1);
    if (event.at("ph") == "X") {
      busy_us[event.at("tid")] += event.at("dur").get<double>();
      const nlohmann::json& args = event.at("args");
      const std::string name = event.at("name");
      CHECK(name.substr(1) == std::to_string(args.at("micro_batch").get<int>()) + "." +
                                  std::to_string(args.at("chunk").get<int>()));
      const int rank = event.at("tid");
      CHECK(args.at("stage") == (args.at("chunk") == 0 ? rank : 3 - rank));
    }
  }
  CHECK(phases["M"] == 1 + 2 * 2);
  CHECK(phases["X"] == 2 * 2 * 3 * 3);
  CHECK(busy_us == std::map<int, double>{{0, 18e6}, {1, 18e6}});
  // Two borders between ranks, both ways, three micro-batches.
  CHECK(phases["s"] == 2 * 2 * 3);
  CHECK(phases["f"] == 2 * 2 * 3);
}

TEST_CASE("arrows lead from a pass to the one that needs it", "[timeline_trace]") {
  std::map<std::int64_t, nlohmann::json> begins;
  int arrows = 0;
  for (const nlohmann::json& event : events_of({planned(0)})) {
    if (event.at("ph") == "s") {
      begins[event.at("id").get<std::int64_t>()] = event;
    } else if (event.at("ph") == "f") {
      const nlohmann::json& begin = begins.at(event.at("id"));
      CHECK(begin.at("tid") != event.at("tid"));
      CHECK(begin.at("ts").get<double>() < event.at("ts").get<double>());
      CHECK(begin.at("name") == event.at("name"));
      ++arrows;
    }
  }
  CHECK(arrows == 12);
}

TEST_CASE("messages that take time are slices of their own", "[timeline_trace]") {
  std::map<std::int64_t, int> open;
  int messages = 0;
  for (const nlohmann::json& event : events_of({planned(0.5)})) {
    if (event.at("ph") == "b") {
      open[event.at("id").get<std::int64_t>()] = 1;
    } else if (event.at("ph") == "e") {
      messages += open.at(event.at("id"));
    }
  }
  CHECK(messages == 2 * 12);
}

TEST_CASE("timelines are processes under each other", "[timeline_trace]") {
  schedule::Timeline measured = planned(0);
  measured.name = "measured";
  std::map<int, std::string> names;
  std::map<std::int64_t, int> ids;
  for (const nlohmann::json& event : events_of({planned(0), measured})) {
    if (event.at("name") == "process_name") {
      names[event.at("pid")] = event.at("args").at("name");
    }
    if (event.at("ph") == "s") {
      ++ids[event.at("id").get<std::int64_t>()];
    }
  }
  CHECK(names == std::map<int, std::string>{{1, "planned \"by\" <me>"}, {2, "measured"}});
  CHECK(ids.size() == 24);
}

TEST_CASE("arrows of hundreds of timelines keep to themselves", "[timeline_trace]") {
  std::map<std::int64_t, int> begins;
  for (const nlohmann::json& event : events_of(std::vector(300, planned(0)))) {
    if (event.at("ph") == "s") {
      ++begins[event.at("id").get<std::int64_t>()];
    }
  }
  CHECK(begins.size() == 300 * 12);
  CHECK(begins.begin()->first > 0);
}

TEST_CASE("collectives lie beside what their rank does", "[timeline_trace]") {
  schedule::Timeline measured = planned(0);
  measured.spans = {{1, "all_gather", 2, 5, schedule::SpanKind::communication},
                    {1, "all_gather", 3, 4, schedule::SpanKind::communication}};
  std::map<std::int64_t, std::pair<double, double>> by_id;
  for (const nlohmann::json& event : events_of({measured})) {
    if (event.at("name") == "all_gather") {
      CHECK(event.at("tid") == 1);
      CHECK(event.at("cat") == "communication");
      auto& times = by_id[event.at("id").get<std::int64_t>()];
      (event.at("ph") == "b" ? times.first : times.second) = event.at("ts").get<double>();
    }
  }
  REQUIRE(by_id.size() == 2);
  CHECK(by_id.begin()->second == std::pair(2e6, 5e6));
}

TEST_CASE("collectives say what they moved, and how fast", "[timeline_trace]") {
  schedule::Timeline measured = planned(0);
  const schedule::CollectiveFacts sum{"all_reduce", "dp", 4, 1'000'000'000, 1.5};
  for (const double time_s : {0.5, 0.0}) {
    measured.spans.push_back({.rank = 1,
                              .name = "a sum",
                              .begin_s = 2,
                              .end_s = 2 + time_s,
                              .kind = schedule::SpanKind::communication,
                              .collective = sum});
  }
  std::vector<nlohmann::json> found;
  for (const nlohmann::json& event : events_of({measured})) {
    if (event.at("name") == "a sum" && event.at("ph") == "b") {
      found.push_back(event.at("args"));
    }
  }
  REQUIRE(found.size() == 2);
  CHECK(found[0] == nlohmann::json::parse(R"({"operation":"all_reduce","communicator":"dp",
                                              "ranks":4,"bytes":1000000000,"busbw_gb_s":3.0})"));
  CHECK_FALSE(found[1].contains("busbw_gb_s"));
}

TEST_CASE("spans have a row of their own above the rank's", "[timeline_trace]") {
  schedule::Timeline measured = planned(0);
  measured.spans = {{0, "load batch", -1, 0}, {1, "load batch", -1, 0}, {1, "update", 18, 19}};
  std::map<int, std::string> rows;
  std::map<int, int> places;
  int spans = 0;
  for (const nlohmann::json& event : events_of({measured})) {
    if (event.at("name") == "thread_name") {
      rows[event.at("tid")] = event.at("args").at("name");
    } else if (event.at("name") == "thread_sort_index") {
      places[event.at("args").at("sort_index")] = event.at("tid");
    } else if (event.at("name") == "load batch") {
      CHECK(event.at("ts") == -1e6);
      CHECK(event.at("dur") == 1e6);
      ++spans;
    }
  }
  CHECK(rows == std::map<int, std::string>{
                    {0, "rank 0"}, {1, "rank 1"}, {2, "rank 0, step"}, {3, "rank 1, step"}});
  CHECK(places == std::map<int, int>{{0, 2}, {1, 0}, {2, 3}, {3, 1}});
  CHECK(spans == 2);
}

}  // namespace
}  // namespace fourfold::plan
