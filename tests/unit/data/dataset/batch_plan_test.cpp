// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/data/sample_order.hpp>

#include <catch2/catch_test_macros.hpp>

#include <vector>

using fourfold::Range;
using fourfold::data::BatchPlan;
using fourfold::data::EvaluationPlan;

namespace {
/// Sample numbers of a step, rank by rank and micro-batch by micro-batch.
std::vector<std::int64_t> samples_of_step(const BatchPlan& plan, std::int64_t first_sample) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t rank = 0; rank < plan.dp; ++rank) {
    for (std::int64_t accumulation = 0; accumulation < plan.accumulation_steps(); ++accumulation) {
      const Range range = plan.micro_batch_samples(first_sample, rank, accumulation);
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
        CHECK_FALSE(plan.valid());
        continue;
      }
      CHECK(plan.valid());
      for (const std::int64_t first_sample : {0, 24, 1001}) {
        std::vector<std::int64_t> expected;
        for (std::int64_t i = 0; i < 24; ++i) {
          expected.push_back(first_sample + i);
        }
        CHECK(samples_of_step(plan, first_sample) == expected);
      }
    }
  }
}

TEST_CASE("no batch is smaller than one", "[batch_plan]") {
  CHECK_FALSE(BatchPlan{0, 1, 1}.valid());
  CHECK_FALSE(BatchPlan{8, 0, 1}.valid());
  CHECK_FALSE(BatchPlan{8, 1, 0}.valid());
}

TEST_CASE("an evaluation visits every sample once with equal rounds on all ranks", "[batch_plan]") {
  for (const std::int64_t samples : {0, 1, 5, 16, 17, 100}) {
    for (const std::int64_t dp : {1, 2, 3, 8}) {
      for (const std::int64_t micro_batch : {1, 4, 7}) {
        const EvaluationPlan plan{samples, micro_batch, dp};
        std::int64_t next = 0;
        for (std::int64_t round = 0; round < plan.rounds(); ++round) {
          for (std::int64_t rank = 0; rank < dp; ++rank) {
            const Range range = plan.micro_batch_samples(round, rank);
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
