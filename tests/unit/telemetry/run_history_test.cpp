// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/telemetry/run_history.hpp>
#include <fourfold/telemetry/step_curve.hpp>
#include <fourfold/telemetry/value_distribution.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace fourfold::telemetry;

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double shares[] = {0, 0.01, 0.5, 0.9, 0.99, 1};

/// Nearest rank, by the plainest means.
double percentile_by_sorting(std::vector<double> values, double share) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::ranges::sort(values);
  const double rank = std::max(std::ceil(share * static_cast<double>(values.size())), 1.0);
  return values.at(static_cast<std::size_t>(rank) - 1);
}

/// @param relative  that a percentile may be wrong by
void check_percentiles(const std::vector<double>& values, double relative) {
  ValueDistribution distribution;
  for (const double value : values) {
    distribution.add(value);
  }
  CHECK(distribution.count() == std::ssize(values));
  for (const double share : shares) {
    const double exact = percentile_by_sorting(values, share);
    CAPTURE(values.size(), share, exact);
    CHECK(std::abs(distribution.percentile(share) - exact) <= relative * std::abs(exact));
  }
}

std::vector<double> log_normal(std::size_t count, double sigma) {
  std::mt19937_64 random(42);  // NOLINT(cert-msc51-cpp): the same numbers each time
  std::lognormal_distribution<double> numbers(0, sigma);
  std::vector<double> values(count);
  std::ranges::generate(values, [&] { return numbers(random); });
  return values;
}

}  // namespace

TEST_CASE("percentiles of up to 65,536 different numbers are exact", "[run_history]") {
  check_percentiles({3}, 0);
  check_percentiles({2, -1, 0, -0.0, 1e300, -1e300, 5e-324, nan_value, HUGE_VAL, 2}, 0);
  check_percentiles(log_normal(65536, 3), 0);
  std::vector<double> few;
  for (std::int64_t i = 0; i < 300'000; ++i) {
    few.push_back(static_cast<double>(i * 7919 % 1000 - 500));
  }
  check_percentiles(few, 0);
  CHECK(std::isnan(ValueDistribution().percentile(0.5)));
  ValueDistribution none;
  none.add(nan_value);
  CHECK(std::isnan(none.percentile(0.5)));
}

TEST_CASE("percentiles of more numbers have the bits that the header says", "[run_history]") {
  check_percentiles(log_normal(400'000, 0.01), std::ldexp(1, -19));
  check_percentiles(log_normal(400'000, 3), std::ldexp(1, -12));
  std::vector<double> uniform(400'000);
  std::mt19937_64 random(7);  // NOLINT(cert-msc51-cpp)
  std::ranges::generate(uniform,
                        [&] { return std::uniform_real_distribution<double>(1, 2)(random); });
  check_percentiles(uniform, std::ldexp(1, -17));
  std::ranges::for_each(uniform, [](double& value) { value = -value; });
  check_percentiles(uniform, std::ldexp(1, -17));
}

TEST_CASE("two distributions are one of the numbers of both", "[run_history]") {
  const std::vector<double> many = log_normal(200'000, 1);
  const std::vector<double> few{1, 2, 3, nan_value};
  for (const bool many_first : {true, false}) {
    ValueDistribution a;
    ValueDistribution b;
    for (const double value : many) {
      (many_first ? a : b).add(value);
    }
    for (const double value : few) {
      (many_first ? b : a).add(value);
    }
    a.add(b);
    std::vector<double> all = many;
    all.insert(all.end(), few.begin(), few.end());
    CHECK(a.count() == std::ssize(all));
    for (const double share : shares) {
      const double exact = percentile_by_sorting(all, share);
      CHECK(std::abs(a.percentile(share) - exact) <= exact * std::ldexp(1, -12));
    }
  }
}

TEST_CASE("a curve of few steps has all of them", "[run_history]") {
  StepCurve curve(StepCurve::most_groups);
  std::vector<double> values;
  for (std::int64_t step = 1; step <= StepCurve::most_groups; ++step) {
    values.push_back(step == 77 ? nan_value : std::sin(static_cast<double>(step)));
    curve.add(step, values.back());
  }
  const auto points = curve.values();
  const auto smooth = curve.smoothed();
  const auto median_at = [&](std::size_t place) {
    const std::size_t begin = place - std::min<std::size_t>(place, 50);
    const std::size_t end = std::min<std::size_t>(place + 51, values.size());
    return percentile_by_sorting({values.begin() + static_cast<std::ptrdiff_t>(begin),
                                  values.begin() + static_cast<std::ptrdiff_t>(end)},
                                 0.5);
  };
  REQUIRE(points.size() == values.size());
  REQUIRE(smooth.size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool same =
        points[i].x == static_cast<double>(i + 1) && smooth[i].x == points[i].x &&
        (std::isnan(values[i]) ? std::isnan(points[i].y) && std::isnan(smooth[i].y)
                               : points[i].y == values[i] && smooth[i].y == median_at(i));
    REQUIRE(same);
  }
}

TEST_CASE("a curve of many steps keeps spikes and gaps, and its memory", "[run_history]") {
  constexpr std::int64_t steps = 1'000'003;
  StepCurve curve(steps);
  for (std::int64_t step = 1; step <= steps; ++step) {
    curve.add(step, step == 500'000   ? 100
                    : step == 700'001 ? -100
                    : step == 900'000 ? nan_value
                                      : 5 + std::sin(static_cast<double>(step)));
  }
  CHECK(curve.steps() == steps);
  const auto points = curve.values();
  CHECK(points.size() <= 3 * StepCurve::most_groups);
  CHECK(points.size() > StepCurve::most_groups);
  CHECK(std::ranges::is_sorted(points, {}, &ChartPoint::x));
  const auto at = [&](double step) {
    const auto found = std::ranges::find(points, step, &ChartPoint::x);
    REQUIRE(found != points.end());
    return found->y;
  };
  CHECK(at(500'000) == 100);
  CHECK(at(700'001) == -100);
  CHECK(std::isnan(at(900'000)));
  const auto smooth = curve.smoothed();
  CHECK(smooth.size() <= StepCurve::most_groups);
  CHECK(std::ranges::is_sorted(smooth, {}, &ChartPoint::x));
  for (const ChartPoint& point : smooth) {
    REQUIRE((point.y > 4 && point.y < 6));  // no spike
  }
  CHECK(smooth.back().x > static_cast<double>(steps) - 100);
}

TEST_CASE("the loss at the end is a mean of the last tenth, at most of 50", "[run_history]") {
  for (const std::int64_t steps : {1, 9, 10, 29, 500, 5000}) {
    RunHistory history(steps);
    for (std::int64_t step = 1; step <= steps; ++step) {
      history.step({.step = step, .loss = static_cast<double>(step)}, 0);
    }
    const std::int64_t tail = std::clamp<std::int64_t>(steps / 10, 1, 50);
    CHECK(history.loss_at_end() == static_cast<double>(steps) - static_cast<double>(tail - 1) / 2);
  }
  CHECK(std::isnan(RunHistory().loss_at_end()));
}
