// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/telemetry/console.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using fourfold::ProgressMode;
using namespace fourfold::telemetry;
using namespace fourfold::runfile;

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

/// A stream in memory that remembers what was written.
class MemoryStream {
 public:
  MemoryStream() : file_(::open_memstream(&text_, &bytes_)) {}
  MemoryStream(const MemoryStream&) = delete;
  MemoryStream& operator=(const MemoryStream&) = delete;
  ~MemoryStream() {
    std::fclose(file_);
    std::free(text_);  // NOLINT: open_memstream allocates with malloc
  }
  std::FILE* file() const { return file_; }
  std::string text() const {
    std::fflush(file_);
    return {text_, bytes_};
  }

 private:
  char* text_ = nullptr;
  std::size_t bytes_ = 0;
  std::FILE* file_;
};

const StepRecord example{120, 3.41214, 1.0234, 6e-4, 1000, 0.8123, 1.234e6, 0.00812};

RunStart run_of(std::int64_t steps, std::size_t ranks) {
  RunStart run;
  run.steps = steps;
  run.rank_hosts.assign(ranks, "node");
  return run;
}

}  // namespace

TEST_CASE("the log line has one place for each number", "[progress]") {
  LineContext context;
  context.steps = 20000;
  context.ranks = 8;
  context.now_s = 1000;
  context.last_checkpoint_s = 959;
  context.remaining_s = 4 * 3600 + 12 * 60;
  const std::string line =
      "step 120/20000 0.6% loss 3.4121 gnorm 1.02 lr 6.00e-04 tok/s 1.23M (154k/rank) 812ms data "
      "1% ckpt 41.0s ago eta "
      "4h12m";
  CHECK(step_line(example, context) == line);
  context.deadline_unix_s = 1000 + 6 * 3600;
  CHECK(step_line(example, context) == line);  // it will be done in time
  context.deadline_unix_s = 1000 + 2 * 3600 + 6 * 60;
  CHECK(step_line(example, context) == line + " (job ends in 2h06m: stops near step 10060)");
  context.deadline_unix_s = 500;  // gone by already
  CHECK_THAT(step_line(example, context),
             ContainsSubstring("(job ends in 0ms: stops near step 120)"));
}

TEST_CASE("the log line shows MFU where it is known", "[progress]") {
  StepRecord record = example;
  record.mfu = 0.41349;
  CHECK_THAT(step_line(record, {}), ContainsSubstring(" tok/s 1.23M mfu 41.3% 812ms data 1%"));
}

TEST_CASE("the log line shows a device's memory as it was seen last", "[progress]") {
  LineContext context;
  context.device_used_bytes = std::int64_t{612} << 30 >> 3;  // 76.5 GiB
  context.device_total_bytes = std::int64_t{80} << 30;
  CHECK_THAT(step_line(example, context),
             ContainsSubstring(" 812ms data 1% hbm 76.5/80.0GiB eta --"));
  const MemoryStream stream;
  Console console(stream.file(), ProgressMode::plain);
  console.start(run_of(9, 1), 0);
  StepRecord record = example;
  console.step(record, 1);
  CHECK_THAT(stream.text(), !ContainsSubstring("hbm"));
  record.device_used_bytes = std::int64_t{20} << 30;
  record.device_total_bytes = std::int64_t{80} << 30;
  console.step(record, 2);
  console.step(example, 3);  // nobody looked
  const std::string text = stream.text();
  CHECK_THAT(text, ContainsSubstring("hbm 20.0/80.0GiB"));
  CHECK(text.find("hbm") != text.rfind("hbm"));
}

TEST_CASE("the log line of f16 shows the loss scale", "[progress]") {
  StepRecord record = example;
  record.grad_norm = std::numeric_limits<double>::infinity();
  record.loss_scale = 65536;
  record.skipped_steps = 3;
  CHECK_THAT(step_line(record, {}),
             ContainsSubstring(" gnorm inf lr 6.00e-04 scale 65536 skipped 3 tok/s 1.23M"));
}

TEST_CASE("the log line stays readable when numbers are missing or not finite", "[progress]") {
  CHECK(step_line({0, nan_value, nan_value, 0, 0, 0, nan_value, 0}, {}) ==
        "step 0/0 0.0% loss nan gnorm nan lr 0.00e+00 tok/s nan 0ms data 0% eta --");
}

TEST_CASE("the remaining time leaves out the first three steps", "[progress]") {
  RemainingTime remaining;
  remaining.start(100, 200, 1000);
  double now_s = 1000;
  for (std::int64_t step = 101; step <= 103; ++step) {
    now_s += 60;
    remaining.step(step, 60, now_s);
    CHECK_FALSE(remaining.remaining_s().has_value());
  }
  for (std::int64_t step = 104; step <= 110; ++step) {
    now_s += 2;
    remaining.step(step, 2, now_s);
  }
  CHECK_THAT(*remaining.remaining_s(), WithinRel(90 * 2.0, 1e-12));
  // An evaluation of 14 seconds after seven counted steps costs two seconds a step.
  now_s += 14;
  now_s += 2;
  remaining.step(111, 2, now_s);
  CHECK_THAT(*remaining.remaining_s(), WithinRel(89 * (2 + 14.0 / 8), 1e-12));
}

TEST_CASE("records that cover several steps count as several", "[progress]") {
  RemainingTime remaining;
  remaining.start(0, 100, 0);
  remaining.step(1, 9, 9);
  remaining.step(10, 3, 36);  // beyond the third step: counted with all its steps
  CHECK_THAT(*remaining.remaining_s(), WithinRel(90 * 3.0, 1e-12));
}

/// A run of 1000 steps, of which 100 took a second each.
RemainingTime after_100_s() {
  RemainingTime remaining;
  remaining.start(0, 1000, 0);
  for (int step = 1; step <= 100; ++step) {
    remaining.step(step, 1, step);
  }
  return remaining;
}

TEST_CASE("the mean step time follows a change within about fifty steps", "[progress]") {
  RemainingTime remaining = after_100_s();
  double now_s = 100;
  for (std::int64_t step = 101; step <= 150; ++step) {
    remaining.step(step, 2, now_s += 2);
  }
  const double mean = *remaining.remaining_s() / 850;
  CHECK_THAT(mean, WithinRel(2 - std::exp(-1.0), 1e-9));
}

TEST_CASE("a step in which the job was suspended says little of the rest", "[progress]") {
  RemainingTime remaining = after_100_s();
  remaining.step(101, 3600, 3700);
  CHECK_THAT(*remaining.remaining_s(), WithinRel(899 * (4 - 3 * std::exp(-1.0 / 50)), 1e-9));
}

TEST_CASE("a run of no or few steps has an end", "[progress]") {
  RemainingTime remaining;
  remaining.start(0, 0, 0);
  CHECK(remaining.remaining_s() == 0.0);
  remaining.start(0, 2, 0);
  remaining.step(1, 1, 1);
  CHECK_FALSE(remaining.remaining_s().has_value());
  remaining.step(2, 1, 2);
  CHECK(remaining.remaining_s() == 0.0);
}

TEST_CASE("without a terminal automatic progress means plain lines", "[progress]") {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  CHECK(resolve_progress(ProgressMode::automatic, file.get()) == ProgressMode::plain);
  CHECK(resolve_progress(ProgressMode::bar, file.get()) == ProgressMode::bar);
  CHECK(resolve_progress(ProgressMode::none, file.get()) == ProgressMode::none);
}

TEST_CASE("plain progress writes whole lines without control characters", "[progress]") {
  const MemoryStream out;
  {
    Console console(out.file(), ProgressMode::plain);
    console.start(run_of(20000, 8), 0);
    console.step(example, 1);
    console.evaluation({120, 3.5, 20480, 2.5}, 2);
    console.checkpoint({120, "ckpt/step-120", 1500000000, 4.2, 4.1}, 3);
    console.checkpoint({130, "ckpt/step-130", 1500000000, 0.5, 4.2}, 3);
    console.log_sink()(fourfold::log::Level::warning, "watch out");
    console.log_sink()(fourfold::log::Level::debug, "not shown");
    console.end({120, fourfold::ExitCode{75}, "stopped by signal"}, 4);
  }
  const std::string text = out.text();
  CHECK_THAT(text, ContainsSubstring(" step 120/20000 0.6% loss 3.4121 ") &&
                       ContainsSubstring("(154k/rank)"));
  CHECK_THAT(text, ContainsSubstring(" step 120 validation loss 3.5000 (20.5k tokens in 2.5s)\n"));
  CHECK_THAT(text, ContainsSubstring(" step 120 checkpoint ckpt/step-120 (1.50 GB in 4.2s)\n"));
  CHECK_THAT(text,
             ContainsSubstring(" step 130 checkpoint ckpt/step-130 (1.50 GB in 4.2s; training "
                               "stood still for 500ms)\n"));
  CHECK_THAT(text, ContainsSubstring(" warning: watch out\n") &&
                       ContainsSubstring(" step 120 stopped by signal\n"));
  CHECK_THAT(text, !ContainsSubstring("not shown") && !ContainsSubstring("\r") &&
                       !ContainsSubstring("\x1b"));
}

TEST_CASE("the bar is drawn over and other lines stay above it", "[progress]") {
  const MemoryStream out;
  auto console = std::make_unique<Console>(out.file(), ProgressMode::bar);
  console->start(run_of(240, 1), 0);
  console->step(example, 10);
  CHECK_THAT(out.text(), ContainsSubstring("\r[====>   ] step 120/240 50.0%"));
  console->step({121, 1, 1, 1, 1, 1, 1, 0}, 10.05);  // too soon to be seen
  CHECK_THAT(out.text(), !ContainsSubstring("step 121"));
  const auto sink = console->log_sink();
  sink(fourfold::log::Level::info, "hello");
  CHECK_THAT(out.text(), ContainsSubstring(" hello\n\r[====>"));
  console->step({240, 1, 1, 1, 1, 1, 1, 0}, 10.06);  // the last one always is
  CHECK_THAT(out.text(), ContainsSubstring("[========] step 240/240"));
  console.reset();
  CHECK(out.text().ends_with("\n"));
  sink(fourfold::log::Level::error, "afterwards");
  CHECK(out.text().ends_with(" error: afterwards\n"));
}

TEST_CASE("the end says why a run stopped, and leaves a failure's reason to the program",
          "[progress]") {
  const auto last_line_with = [](int code) {
    const MemoryStream out;
    Console console(out.file(), ProgressMode::plain);
    console.start(run_of(10, 1), 0);
    console.end({7, fourfold::ExitCode{code}, "the reason"}, 1);
    return out.text();
  };
  CHECK_THAT(last_line_with(0), ContainsSubstring(" step 7 the reason\n"));
  CHECK_THAT(last_line_with(75), ContainsSubstring(" step 7 the reason\n"));
  CHECK_THAT(last_line_with(65), ContainsSubstring(" step 7 failed, exit code 65\n"));
  CHECK_THAT(last_line_with(65), !ContainsSubstring("the reason"));
}

TEST_CASE("a narrow terminal keeps what is looked at: step, time left, tokens/s, loss",
          "[progress]") {
  LineContext context;
  context.steps = 20000;
  context.ranks = 8;
  context.now_s = 1000;
  context.last_checkpoint_s = 959;
  context.remaining_s = 4 * 3600 + 12 * 60;
  CHECK(bar_line(example, context, 200) ==
        "[>                       ] " + step_line(example, context));
  CHECK(bar_line(example, context, 99) ==
        "[>       ] step 120/20000 0.6% loss 3.4121 gnorm 1.02 lr 6.00e-04 tok/s 1.23M 812ms eta "
        "4h12m");
  CHECK(bar_line(example, context, 79) ==
        "[>       ] step 120/20000 0.6% loss 3.4121 tok/s 1.23M 812ms eta 4h12m");
  CHECK(bar_line(example, context, 59) ==
        "[>       ] step 120/20000 loss 3.4121 tok/s 1.23M eta 4h12m");
  CHECK(bar_line(example, context, 58) == "step 120/20000 loss 3.4121 tok/s 1.23M eta 4h12m");
  CHECK(bar_line(example, context, 39) == "step 120/20000 tok/s 1.23M eta 4h12m");
  CHECK(bar_line(example, context, 30) == "step 120/20000 eta 4h12m");
  CHECK(bar_line(example, context, 15) == "step 120/20000");
  CHECK(bar_line(example, context, 6) == "step 1");
  CHECK(bar_line(example, context, 0).empty());
  context.deadline_unix_s = 1000 + 2 * 3600 + 6 * 60;
  CHECK(bar_line(example, context, 79) ==
        "[>       ] step 120/20000 loss 3.4121 tok/s 1.23M eta 4h12m (job ends in 2h06m)");
  CHECK(bar_line(example, context, 69) ==
        "step 120/20000 loss 3.4121 tok/s 1.23M eta 4h12m (job ends in 2h06m)");
  for (std::size_t columns = 0; columns < 220; ++columns) {
    CAPTURE(columns);
    CHECK(bar_line(example, context, columns).size() <= columns);
  }
}

TEST_CASE("no progress leaves only warnings and errors", "[progress]") {
  const MemoryStream out;
  Console console(out.file(), ProgressMode::none);
  console.start(run_of(10, 1), 0);
  console.step(example, 1);
  console.evaluation({1, 1, 1, 1}, 1);
  console.end({10, fourfold::ExitCode{0}, "finished"}, 2);
  console.log_sink()(fourfold::log::Level::info, "begins at step 1");
  CHECK(out.text().empty());
  console.log_sink()(fourfold::log::Level::warning, "watch out");
  console.log_sink()(fourfold::log::Level::error, "too late");
  CHECK_THAT(out.text(),
             ContainsSubstring(" warning: watch out\n") && ContainsSubstring(" error: too late\n"));
}
