// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/plan/simulate.hpp>
#include <fourfold/plan/timeline_svg.hpp>
#include <fourfold/schedule/schedule_generators.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>
#include <vector>

namespace fourfold::plan {
namespace {

using Catch::Matchers::ContainsSubstring;

schedule::Timeline planned(const std::string& name, int micro_batches) {
  const schedule::Schedule schedule =
      schedule::make_schedule({.name = name, .stages = 2, .micro_batches = micro_batches});
  return simulate(schedule, even_costs(schedule, {1, 1, 1}));
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST_CASE("a picture has every pass, its number and what is left of each row", "[timeline_svg]") {
  const std::vector timelines = {planned("1f1b", 3)};
  const std::string svg =
      timeline_svg(timelines, {.title = "a <b> & \"c\"", .subtitle = "below", .unit = {}});
  CHECK(count(svg, "<title>") == 2 * 2 * 3);
  CHECK(count(svg, "of micro-batch 2, chunk 0;") == 4);
  CHECK_THAT(svg, ContainsSubstring("rank 1: backward of micro-batch 0, chunk 0; 2 to 4 s"));
  CHECK_THAT(svg, ContainsSubstring(">backward</text>"));
  CHECK_THAT(svg, !ContainsSubstring("weight half"));
  CHECK_THAT(svg, !ContainsSubstring("chunk 1"));
  CHECK(count(svg, ">25.0 %</text>") == 2);  // of 12, 9 are work
  CHECK_THAT(svg, ContainsSubstring("a &lt;b&gt; &amp; &quot;c&quot;"));
}

TEST_CASE("chunks have shades, and panels one axis", "[timeline_svg]") {
  std::vector timelines = {planned("zb-v", 3), planned("zb-v", 3)};
  timelines[1].name = "measured";
  for (schedule::TimelineEvent& event : timelines[1].events) {
    event.begin_s = 1e-3 * event.begin_s + 7;  // begins at another time
    event.end_s = 1e-3 * event.end_s + 7;
  }
  const std::string svg =
      timeline_svg(timelines, {.title = "", .subtitle = "", .unit = Drawing::Unit::own});
  CHECK_THAT(svg, ContainsSubstring(">measured</text>"));
  CHECK_THAT(svg, ContainsSubstring(">chunk 1</text>"));
  CHECK_THAT(svg, ContainsSubstring("class=\"i1\""));
  CHECK(count(svg, "<title>") == 2 * 2 * 18);
  CHECK(count(svg, ">time</text>") == 1);
}

TEST_CASE("a timeline without passes is an empty picture", "[timeline_svg]") {
  const std::vector<schedule::Timeline> timelines(1);
  const std::string svg = timeline_svg(timelines, {});
  CHECK(svg.ends_with("</svg>\n"));
  CHECK_THAT(svg, !ContainsSubstring("nan") && !ContainsSubstring("inf"));
}

TEST_CASE("what nobody could see is not drawn", "[timeline_svg]") {
  const std::vector timelines = {planned("1f1b", 25'001)};
  CHECK_THROWS_WITH(timeline_svg(timelines, {}), ContainsSubstring("100004 actions are too many"));
}

}  // namespace
}  // namespace fourfold::plan
