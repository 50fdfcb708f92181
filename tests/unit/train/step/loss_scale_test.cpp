// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/train/loss_scale.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace fourfold;
using train::LossScale;
using train::StepStatus;

namespace {

runfile::TrainConfig f16_config() {
  return {.precision = DType::f16,
          .loss_scale_initial = 64,
          .loss_scale_window = 4,
          .loss_scale_min = 8,
          .recompute = {}};
}

/// The scale of each step when the steps named by 'x' overflow.
std::vector<double> course(LossScale& loss_scale, const std::string& steps) {
  std::vector<double> scales;
  for (const char step : steps) {
    scales.push_back(loss_scale.scale());
    loss_scale.finish_step(step != 'x');
  }
  return scales;
}

}  // namespace

// The numbers of torch.amp.GradScaler(init_scale=64, growth_interval=4) for the same overflows.
TEST_CASE("the loss scale halves with an overflow and doubles after a window without",
          "[loss_scale]") {
  LossScale loss_scale(f16_config());
  CHECK(course(loss_scale, "x...x....x........x") == std::vector<double>{64, 32, 32, 32, 32, 16, 16,
                                                                         16, 16, 32, 16, 16, 16, 16,
                                                                         32, 32, 32, 32, 64});
  CHECK(loss_scale.scale() == 32);
  CHECK(loss_scale.state() ==
        train::LossScaleState{.scale = 32, .good_steps = 0, .skipped_steps = 4});
}

TEST_CASE("an overflow at the lowest loss scale is the last", "[loss_scale]") {
  LossScale loss_scale(f16_config());
  for (const double scale : {64.0, 32.0, 16.0}) {
    CHECK(loss_scale.scale() == scale);
    CHECK(loss_scale.finish_step(false) == StepStatus::skipped);
  }
  CHECK(loss_scale.scale() == 8);
  CHECK(loss_scale.finish_step(true) == StepStatus::applied);
  CHECK(loss_scale.finish_step(false) == StepStatus::lost);
  CHECK(loss_scale.scale() == 8);
}

TEST_CASE("a fixed loss scale stays, and an overflow is the last", "[loss_scale]") {
  runfile::TrainConfig config = f16_config();
  config.loss_scale = 512;
  LossScale loss_scale(config);
  CHECK(course(loss_scale, "..........") == std::vector<double>(10, 512));
  CHECK(loss_scale.finish_step(false) == StepStatus::lost);
}

TEST_CASE("steps under a fixed loss scale do not count towards doubling a moving one",
          "[loss_scale]") {
  runfile::TrainConfig config = f16_config();
  config.loss_scale = 512;
  LossScale fixed(config);
  course(fixed, std::string(100, '.'));
  LossScale moving(f16_config());
  moving.restore(fixed.state());
  CHECK(moving.finish_step(true) == StepStatus::applied);
  CHECK(moving.scale() == 512);
  CHECK(moving.state().good_steps == 1);
  fixed.restore({.scale = 512, .good_steps = 3, .skipped_steps = 0});
  CHECK(fixed.state().good_steps == 0);
}

TEST_CASE("f32 and bf16 are not scaled, and what is not finite is lost", "[loss_scale]") {
  runfile::TrainConfig config = f16_config();
  config.precision = GENERATE(DType::f32, DType::bf16);
  LossScale loss_scale(config);
  CHECK_FALSE(loss_scale.in_use());
  CHECK(course(loss_scale, "..........") == std::vector<double>(10, 1));
  CHECK(loss_scale.finish_step(false) == StepStatus::lost);
}

TEST_CASE("the loss scale does not double for ever", "[loss_scale]") {
  runfile::TrainConfig config = f16_config();
  config.loss_scale_window = 1;
  LossScale loss_scale(config);
  course(loss_scale, std::string(200, '.'));
  CHECK(loss_scale.scale() == static_cast<double>(runfile::largest_loss_scale));
}

TEST_CASE("a loss scale goes on from any state as if it had not stopped", "[loss_scale]") {
  const std::string steps = "x.x.....x..........x.xx.........";
  LossScale whole(f16_config());
  const std::vector<double> expected = course(whole, steps);
  for (std::size_t stop = 0; stop <= steps.size(); ++stop) {
    LossScale before(f16_config());
    std::vector<double> joined = course(before, steps.substr(0, stop));
    LossScale after(f16_config());
    after.restore(before.state());
    std::ranges::copy(course(after, steps.substr(stop)), std::back_inserter(joined));
    CHECK(joined == expected);
    CHECK(after.state() == whole.state());
  }
}

TEST_CASE("a restored loss scale obeys the run file", "[loss_scale]") {
  const train::LossScaleState saved{.scale = 4, .good_steps = 3, .skipped_steps = 7};
  LossScale moving(f16_config());
  moving.restore(saved);
  CHECK(moving.scale() == 8);  // the lowest allowed now
  runfile::TrainConfig config = f16_config();
  config.loss_scale = 512;
  LossScale fixed(config);
  fixed.restore(saved);
  CHECK(fixed.scale() == 512);
  config.precision = DType::bf16;
  LossScale unused(config);
  unused.restore(saved);
  CHECK(unused.scale() == 1);
  for (const LossScale& each : {moving, fixed, unused}) {
    CHECK(each.state().skipped_steps == 7);  // bias corrections go on
  }
}
