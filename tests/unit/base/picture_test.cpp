// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/picture.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace fourfold {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("ticks are 1, 2 or 5 times a power of ten apart", "[picture]") {
  CHECK(tick_distance(10, 5) == 2);
  CHECK(tick_distance(6, 5) == 1);
  CHECK(tick_distance(30, 6) == 5);
  CHECK(tick_distance(480, 5) == 100);
}

TEST_CASE("ticks lie on the axis, its ends too", "[picture]") {
  CHECK(ticks_of({.low = 0, .high = 10}, 5) == std::vector<double>{0, 5, 10});
  CHECK(ticks_of({.low = 3.5, .high = 9.9}, 2) == std::vector<double>{4, 6, 8});
  CHECK(ticks_of({.low = 0.1, .high = 0.3}, 0.1).size() == 3);  // 0.3 / 0.1 is below 3
  const std::vector<double> around_zero = ticks_of({.low = -0.4, .high = 0.9}, 0.5);
  REQUIRE(around_zero.size() == 2);
  CHECK_FALSE(std::signbit(around_zero.front()));
}

TEST_CASE("a tick has four digits and a letter for thousands", "[picture]") {
  CHECK(tick_text(0) == "0");
  CHECK(tick_text(-2.5) == "-2.5");
  CHECK(tick_text(999) == "999");
  CHECK(tick_text(12'345) == "12.35k");
  CHECK(tick_text(3e15) == "3000T");
}

TEST_CASE("an axis has its texts where its ticks are", "[picture]") {
  const AxisScale scale{.low = 0, .high = 4, .begin = 100, .end = 300};
  CHECK(scale.place(1) == 150);
  CHECK(horizontal_axis(scale, 20, 4) ==
        "<line class=\"axis\" x1=\"100.0\" x2=\"300.0\" y1=\"20.0\" y2=\"20.0\"/>"
        "<line class=\"axis\" x1=\"100.0\" x2=\"100.0\" y1=\"20.0\" y2=\"24.0\"/>"
        "<text class=\"mid\" x=\"100.0\" y=\"35.0\">0</text>"
        "<line class=\"axis\" x1=\"300.0\" x2=\"300.0\" y1=\"20.0\" y2=\"24.0\"/>"
        "<text class=\"mid\" x=\"300.0\" y=\"35.0\">4</text>");
  CHECK_THAT(horizontal_axis(scale, 20, 2, [](double) { return "x"; }), ContainsSubstring(">x<"));
}

TEST_CASE("a picture begins with its size, its look and its titles", "[picture]") {
  const std::string svg = begin_picture({.width = 900,
                                         .height = 470.4,
                                         .title = "a <b>",
                                         .subtitle = "\"c\" & d",
                                         .style = ".own{}",
                                         .opening = "<!-- mine --><svg "});
  CHECK(
      svg.starts_with("<!-- mine --><svg xmlns=\"http://www.w3.org/2000/svg\" "
                      "viewBox=\"0 0 900 470\" width=\"900\" height=\"470\""));
  CHECK_THAT(svg, ContainsSubstring("aria-label=\"a &lt;b&gt;\"><style>" +
                                    std::string(picture_style) + ".own{}</style>"));
  CHECK_THAT(svg, ContainsSubstring(">a &lt;b&gt;</text>") &&
                      ContainsSubstring(">&quot;c&quot; &amp; d</text>\n"));
  CHECK(begin_picture({}).starts_with("<svg xmlns="));
}

}  // namespace
}  // namespace fourfold
