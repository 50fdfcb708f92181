// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/data/batch_plan.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace fourfold::data {

void BatchPlan::validate() const {
  if (global_batch < 1 || micro_batch < 1 || dp < 1) {
    throw UserError(
        ExitCode::config,
        fmt::format("train.global_batch = {}, train.micro_batch = {}, mesh.dp = {}: each "
                    "must be at least 1",
                    global_batch, micro_batch, dp));
  }
  if (global_batch / dp < micro_batch && global_batch % dp == 0) {
    throw UserError(
        ExitCode::config,
        fmt::format(
            "train.micro_batch = {} is larger than the {} samples that train.global_batch = {} "
            "gives each of mesh.dp = {} ranks; set train.micro_batch = {}",
            micro_batch, global_batch / dp, global_batch, dp, global_batch / dp));
  }
  if (global_batch % dp != 0 || global_batch / dp % micro_batch != 0) {
    const std::int64_t unit = dp * micro_batch;
    const std::int64_t below = global_batch / unit * unit;
    throw UserError(
        ExitCode::config,
        fmt::format(
            "train.global_batch = {} is not a multiple of mesh.dp x train.micro_batch = {} x {} "
            "(every rank takes the same number of whole micro-batches); set train.global_batch to "
            "{}{}",
            global_batch, dp, micro_batch, below > 0 ? fmt::format("{} or ", below) : "",
            below + unit));
  }
}

SampleRange BatchPlan::micro_batch_samples(std::int64_t step, std::int64_t dp_rank,
                                           std::int64_t accumulation_step) const {
  FOURFOLD_EXPECT(step >= 0 && dp_rank >= 0 && dp_rank < dp);
  FOURFOLD_EXPECT(accumulation_step >= 0 && accumulation_step < accumulation_steps());
  return {step * global_batch + dp_rank * samples_per_rank() + accumulation_step * micro_batch,
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
