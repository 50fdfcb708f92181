// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/data/batch_plan.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>
#include <vector>

using fourfold::data::BatchPlan;
using fourfold::data::EvaluationPlan;
using fourfold::data::SampleRange;

namespace {
/// Sample numbers of one step, rank by rank and micro-batch by micro-batch.
std::vector<std::int64_t> samples_of_step(const BatchPlan& plan, std::int64_t step) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t rank = 0; rank < plan.dp; ++rank) {
    for (std::int64_t accumulation = 0; accumulation < plan.accumulation_steps(); ++accumulation) {
      const SampleRange range = plan.micro_batch_samples(step, rank, accumulation);
      CHECK(range.count == plan.micro_batch);
      for (std::int64_t number = range.begin; number < range.end(); ++number) {
        numbers.push_back(number);
      }
    }
  }
  return numbers;
}
}  // namespace

TEST_CASE("a step takes the same samples in the same order at any dp and micro-batch",
          "[batch_plan]") {
  for (const std::int64_t dp : {1, 2, 3, 4, 6, 8, 12, 24}) {
    for (const std::int64_t micro_batch : {1, 2, 3, 4, 8, 24}) {
      const BatchPlan plan{24, micro_batch, dp};
      if (24 % (dp * micro_batch) != 0) {
        CHECK_THROWS_AS(plan.validate(), fourfold::UserError);
        continue;
      }
      plan.validate();
      for (const std::int64_t step : {0, 1, 1000}) {
        std::vector<std::int64_t> expected;
        for (std::int64_t i = 0; i < 24; ++i) {
          expected.push_back(step * 24 + i);
        }
        CHECK(samples_of_step(plan, step) == expected);
      }
    }
  }
}

TEST_CASE("an impossible batch names the sizes that work", "[batch_plan]") {
  const auto message_of = [](const BatchPlan& plan) -> std::string {
    try {
      plan.validate();
    } catch (const fourfold::UserError& error) {
      CHECK(error.code() == fourfold::ExitCode::config);
      return error.what();
    }
    return "";
  };
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(message_of({10, 3, 2}), ContainsSubstring("set train.global_batch to 6 or 12"));
  CHECK_THAT(message_of({3, 1, 4}), ContainsSubstring("set train.global_batch to 4"));
  CHECK_THAT(message_of({8, 4, 4}), ContainsSubstring("set train.micro_batch = 2"));
  CHECK_THAT(message_of({0, 1, 1}), ContainsSubstring("at least 1"));
  CHECK_THAT(message_of({8, 0, 1}), ContainsSubstring("at least 1"));
}

TEST_CASE("an evaluation visits every sample once with equal rounds on all ranks", "[batch_plan]") {
  for (const std::int64_t samples : {0, 1, 5, 16, 17, 100}) {
    for (const std::int64_t dp : {1, 2, 3, 8}) {
      for (const std::int64_t micro_batch : {1, 4, 7}) {
        const EvaluationPlan plan{samples, micro_batch, dp};
        std::int64_t next = 0;
        for (std::int64_t round = 0; round < plan.rounds(); ++round) {
          for (std::int64_t rank = 0; rank < dp; ++rank) {
            const SampleRange range = plan.micro_batch_samples(round, rank);
            CHECK(range.begin == next);
            CHECK((range.count >= 0 && range.count <= micro_batch));
            next = range.end();
          }
        }
        CHECK(next == samples);
        CHECK(plan.rounds() <= (samples + dp * micro_batch - 1) / (dp * micro_batch));
      }
    }
  }
}
