// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/data/batch_plan.hpp>

#include <algorithm>

namespace fourfold::data {

bool BatchPlan::valid() const noexcept {
  return global_batch >= 1 && micro_batch >= 1 && dp >= 1 && global_batch % (dp * micro_batch) == 0;
}

SampleRange BatchPlan::micro_batch_samples(std::int64_t first_sample, std::int64_t dp_rank,
                                           std::int64_t accumulation_step) const {
  FOURFOLD_EXPECT(first_sample >= 0 && dp_rank >= 0 && dp_rank < dp);
  FOURFOLD_EXPECT(accumulation_step >= 0 && accumulation_step < accumulation_steps());
  return {first_sample + dp_rank * samples_per_rank() + accumulation_step * micro_batch,
          micro_batch};
}

std::int64_t EvaluationPlan::rounds() const noexcept {
  const std::int64_t per_round = dp * micro_batch;
  return (samples + per_round - 1) / per_round;
}

SampleRange EvaluationPlan::micro_batch_samples(std::int64_t round, std::int64_t dp_rank) const {
  FOURFOLD_EXPECT(round >= 0 && round < rounds() && dp_rank >= 0 && dp_rank < dp);
  const std::int64_t begin = std::min(samples, (round * dp + dp_rank) * micro_batch);
  return {begin, std::min(micro_batch, samples - begin)};
}

}  // namespace fourfold::data
