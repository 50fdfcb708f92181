// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/schedule_generators.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <string>

namespace fourfold::schedule {
namespace {

/// The lines of ranks, without the comments.
std::string lines(const ScheduleRequest& request) {
  const std::string text = schedule_csv(make_schedule(request));
  return text.substr(text.find("\nF0") + 1);
}

std::string refusal(const ScheduleRequest& request) {
  try {
    validate(request);
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::config);
    return error.what();
  }
  return "";
}

TEST_CASE("small schedules are as drawn by hand", "[schedule_generators]") {
  CHECK(lines({.name = "naive", .stages = 2, .micro_batches = 2}) == "F0,B0,F1,B1\nF0,B0,F1,B1\n");
  CHECK(lines({.name = "gpipe", .stages = 1, .micro_batches = 3}) == "F0,F1,F2,B0,B1,B2\n");
  CHECK(lines({.name = "1f1b", .stages = 3, .micro_batches = 4}) ==
        "F0,F1,F2,B0,F3,B1,B2,B3\n"
        "F0,F1,B0,F2,B1,F3,B2,B3\n"
        "F0,B0,F1,B1,F2,B2,F3,B3\n");
  CHECK(lines({.name = "1f1b", .stages = 3, .micro_batches = 1}) == "F0,B0\nF0,B0\nF0,B0\n");
  CHECK(lines({.name = "interleaved", .stages = 2, .micro_batches = 2}) ==
        "F0.0,F1.0,F0.1,F1.1,B0.1,B1.1,B0.0,B1.0\n"
        "F0.0,F1.0,F0.1,B0.1,F1.1,B1.1,B0.0,B1.0\n");
  CHECK(lines({.name = "zb-h1", .stages = 2, .micro_batches = 3}) ==
        "F0,F1,I0,W0,F2,I1,W1,I2,W2\n"
        "F0,I0,F1,I1,W0,F2,I2,W1,W2\n");
  CHECK(lines({.name = "zb-v", .stages = 2, .micro_batches = 3}) ==
        "F0.0,F1.0,F2.0,F0.1,I0.1,W0.1,F1.1,I1.1,W1.1,I0.0,W0.0,F2.1,I2.1,W2.1,I1.0,W1.0,I2.0,"
        "W2.0\n"
        "F0.0,F0.1,F1.0,F1.1,I0.1,W0.1,I0.0,W0.0,F2.0,F2.1,I1.1,W1.1,I1.0,I2.1,I2.0,W1.0,W2.1,"
        "W2.0\n");
}

TEST_CASE("every schedule of every size passes the checker", "[schedule_generators]") {
  const std::string schedule_name =
      GENERATE("naive", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v");
  const int least = usual_chunks(schedule_name);
  const int most = schedule_name == "interleaved" ? 4 : least;
  for (int stages = 1; stages <= 8; ++stages) {
    for (int micro_batches = 1; micro_batches <= 20; ++micro_batches) {
      for (int chunks = least; chunks <= most; ++chunks) {
        const ScheduleRequest request{.name = schedule_name,
                                      .stages = stages,
                                      .micro_batches = micro_batches,
                                      .chunks = chunks};
        if (schedule_name == "interleaved" && micro_batches < stages) {
          CHECK(refusal(request) != "");
          continue;
        }
        const auto defect = check_schedule(make_schedule(request));
        INFO(schedule_name << " p " << stages << " m " << micro_batches << " v " << chunks << ": "
                           << defect.value_or(""));
        CHECK_FALSE(defect);
      }
    }
  }
}

TEST_CASE("the checker is quick on a large step", "[schedule_generators]") {
  const Schedule schedule = make_schedule({.name = "zb-v", .stages = 64, .micro_batches = 1024});
  CHECK_FALSE(check_schedule(schedule));
}

TEST_CASE("what a schedule cannot do is refused with what works", "[schedule_generators]") {
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(refusal({.name = "1f1d"}),
             ContainsSubstring("mesh.schedule") && ContainsSubstring("did you mean \"1f1b\"?"));
  CHECK_THAT(refusal({.name = "dualpipe"}), ContainsSubstring("zb-v"));
  CHECK_THAT(refusal({.name = "zb-v", .stages = 2, .micro_batches = 4, .chunks = 3}),
             ContainsSubstring("mesh.chunks = 3") && ContainsSubstring("set it to 2"));
  CHECK_THAT(refusal({.name = "1f1b", .stages = 2, .micro_batches = 4, .chunks = 2}),
             ContainsSubstring("set it to 1") && ContainsSubstring("interleaved"));
  CHECK_THAT(refusal({.name = "interleaved", .stages = 2, .micro_batches = 4, .chunks = 1}),
             ContainsSubstring("2 or more") && ContainsSubstring("set it to 2"));
  CHECK_THAT(refusal({.name = "interleaved", .stages = 4, .micro_batches = 3, .sequences = 16}),
             ContainsSubstring("set train.global_batch to 64 or more"));
  CHECK_THAT(refusal({.name = "interleaved", .stages = 4, .micro_batches = 3}),
             ContainsSubstring("train.global_batch") && ContainsSubstring("has 4"));
  CHECK_THAT(refusal({.name = "1f1b", .stages = 4, .micro_batches = 0}),
             ContainsSubstring("at least 1"));
  CHECK_THAT(refusal({.name = "1f1b", .stages = 0, .micro_batches = 1}),
             ContainsSubstring("mesh.pp = 0"));
  CHECK_THAT(refusal({.name = "1f1b", .stages = 1 << 14, .micro_batches = 1 << 14}),
             ContainsSubstring("at most 128"));
  CHECK_THAT(refusal({.name = "zb-v", .stages = 2'000'000'000, .micro_batches = 1}),
             ContainsSubstring("set mesh.pp to 1048576 or less"));
  CHECK(refusal({.name = "interleaved", .stages = 4, .micro_batches = 4}) == "");
  CHECK(schedule_names().size() == 6);
}

}  // namespace
}  // namespace fourfold::schedule
