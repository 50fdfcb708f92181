// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/telemetry/human_text.hpp>

#include <catch2/catch_test_macros.hpp>

#include <limits>

using namespace fourfold::telemetry;

TEST_CASE("numbers are shown with three digits", "[human_text]") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(999) == "999 B");
  CHECK(bytes_text(1'420'000) == "1.42 MB");
  CHECK(bytes_text(12'345'678'901) == "12.3 GB");
  CHECK(count_text(15'300) == "15.3k");
  CHECK(count_text(std::numeric_limits<double>::quiet_NaN()) == "nan");
}

TEST_CASE("durations are shown in two units", "[human_text]") {
  CHECK(duration_text(0.812) == "812ms");
  CHECK(duration_text(41) == "41.0s");
  CHECK(duration_text(185) == "3m05s");
  CHECK(duration_text(15'120) == "4h12m");
  CHECK(duration_text(2 * 86'400 + 4 * 3'600) == "2d04h");
  CHECK(duration_text(-1) == "--");
}
