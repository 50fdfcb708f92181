// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/runfile/learning_rate.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <cmath>
#include <limits>
#include <numbers>

using Catch::Matchers::WithinRel;
using fourfold::runfile::learning_rate;
using fourfold::runfile::LearningRateSchedule;
using fourfold::runfile::ScheduleKind;

namespace {
constexpr double tight = 1e-14;
constexpr std::int64_t far_beyond = std::numeric_limits<std::int64_t>::max() - 1;
}  // namespace

TEST_CASE("warm-up is linear, starts above zero and ends at the peak", "[learning_rate]") {
  for (ScheduleKind kind : {ScheduleKind::warmup_cosine, ScheduleKind::linear,
                            ScheduleKind::constant, ScheduleKind::wsd}) {
    const LearningRateSchedule schedule{kind, 6e-4, 6e-5, 10, 100, 20};
    CHECK_THAT(learning_rate(schedule, 0), WithinRel(6e-5, tight));
    CHECK_THAT(learning_rate(schedule, 4), WithinRel(3e-4, tight));
    CHECK_THAT(learning_rate(schedule, 9), WithinRel(6e-4, tight));
    CHECK_THAT(learning_rate(schedule, 10), WithinRel(6e-4, tight));
  }
}

TEST_CASE("cosine follows half a period from the peak to the floor", "[learning_rate]") {
  const LearningRateSchedule schedule{ScheduleKind::warmup_cosine, 1.0, 0.2, 10, 110, 0};
  CHECK_THAT(learning_rate(schedule, 60), WithinRel(0.6, tight));  // half way: the mean
  // cos(pi / 3) = 1/2 and cos(2 pi / 3) = -1/2 need a span that three divides.
  const LearningRateSchedule thirds{ScheduleKind::warmup_cosine, 1.0, 0.0, 0, 3, 0};
  CHECK_THAT(learning_rate(thirds, 0), WithinRel(1.0, tight));
  CHECK_THAT(learning_rate(thirds, 1), WithinRel(0.75, tight));
  CHECK_THAT(learning_rate(thirds, 2), WithinRel(0.25, tight));
  // The last update of a run of 110 steps is just above the floor, the next one is on it.
  const double last = 0.2 + 0.4 * (1 + std::cos(std::numbers::pi * 0.99));
  CHECK_THAT(learning_rate(schedule, 109), WithinRel(last, tight));
  CHECK(learning_rate(schedule, 110) == 0.2);
  CHECK(learning_rate(schedule, far_beyond) == 0.2);
}

TEST_CASE("linear falls by the same amount each step", "[learning_rate]") {
  const LearningRateSchedule schedule{ScheduleKind::linear, 1.0, 0.5, 0, 10, 0};
  CHECK(learning_rate(schedule, 0) == 1.0);
  CHECK_THAT(learning_rate(schedule, 1), WithinRel(0.95, tight));
  CHECK_THAT(learning_rate(schedule, 9), WithinRel(0.55, tight));
  CHECK(learning_rate(schedule, 10) == 0.5);
  CHECK(learning_rate(schedule, far_beyond) == 0.5);
}

TEST_CASE("constant stays at the peak for ever", "[learning_rate]") {
  const LearningRateSchedule schedule{ScheduleKind::constant, 0.25, 0.1, 2, 4, 0};
  CHECK(learning_rate(schedule, 2) == 0.25);
  CHECK(learning_rate(schedule, far_beyond) == 0.25);
}

TEST_CASE("wsd is flat until the cool-down", "[learning_rate]") {
  const LearningRateSchedule schedule{ScheduleKind::wsd, 1.0, 0.0, 5, 100, 20};
  CHECK(learning_rate(schedule, 5) == 1.0);
  CHECK(learning_rate(schedule, 79) == 1.0);
  CHECK(learning_rate(schedule, 80) == 1.0);
  CHECK_THAT(learning_rate(schedule, 85), WithinRel(0.75, tight));
  CHECK_THAT(learning_rate(schedule, 99), WithinRel(0.05, 1e-12));
  CHECK(learning_rate(schedule, 100) == 0.0);
  CHECK(learning_rate(schedule, far_beyond) == 0.0);
}

TEST_CASE("degenerate lengths give finite rates", "[learning_rate]") {
  for (ScheduleKind kind : {ScheduleKind::warmup_cosine, ScheduleKind::linear, ScheduleKind::wsd}) {
    const LearningRateSchedule empty{kind, 1.0, 0.5, 0, 0, 0};
    CHECK(learning_rate(empty, 0) == 0.5);
    const LearningRateSchedule all_warmup{kind, 1.0, 0.5, 8, 8, 0};
    CHECK(learning_rate(all_warmup, 7) == 1.0);
    CHECK(learning_rate(all_warmup, 8) == 0.5);
  }
}

TEST_CASE("who makes a run longer is told what its rates become", "[learning_rate]") {
  using fourfold::runfile::rate_eta;
  const LearningRateSchedule before{ScheduleKind::linear, 1.0, 0.5, 0, 10, 0};
  const LearningRateSchedule stretched{ScheduleKind::linear, 1.0, 0.5, 0, 20, 0};
  CHECK(rate_eta(before, stretched, 10, 20) ==
        "the learning rate was 0.55 at update 10 and is 0.75 at update 11; it comes to "
        "optim.min_lr = 0.5 after update 20");
  CHECK(rate_eta(before, before, 10, 20) ==
        "the learning rate was 0.55 at update 10 and is 0.5 at update 11: optim.min_lr, since the "
        "decay ended at update 10");
  const LearningRateSchedule constant{ScheduleKind::constant, 0.25, 0, 0, 4, 0};
  CHECK(rate_eta(constant, constant, 4, 9) ==
        "the learning rate was 0.25 at update 4 and is 0.25 at update 5");
}

TEST_CASE("updates that change nothing are known before they are made", "[learning_rate]") {
  using fourfold::runfile::ends_at_rate_zero;
  LearningRateSchedule schedule{ScheduleKind::warmup_cosine, 1.0, 0.0, 0, 10, 0};
  CHECK_FALSE(ends_at_rate_zero(schedule, 9, 20));  // the tenth has a rate
  CHECK(ends_at_rate_zero(schedule, 10, 20));
  schedule.min_lr = 1e-5;
  CHECK_FALSE(ends_at_rate_zero(schedule, 10, 20));
  schedule = {ScheduleKind::constant, 1.0, 0.0, 0, 10, 0};
  CHECK_FALSE(ends_at_rate_zero(schedule, 10, 20));
  schedule.lr = 0;
  CHECK(ends_at_rate_zero(schedule, 0, 20));
}
