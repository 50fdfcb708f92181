// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/data/sample_order.hpp>

#include <algorithm>
#include <bit>

namespace fourfold::data {

std::int64_t permuted(std::uint64_t seed, std::uint64_t epoch, std::int64_t size,
                      std::int64_t index) {
  FOURFOLD_EXPECT(size >= 1 && index >= 0 && index < size);
  constexpr std::uint64_t rounds = 8;
  const PhiloxKey key = philox_key(seed, RandomUse::sample_order, epoch);
  const std::uint64_t highest = size - 1;
  const auto bits = static_cast<int>(std::bit_width(highest));
  const int high_bits = bits / 2;
  const int low_bits = bits - high_bits;
  const std::uint64_t low_mask = (std::uint64_t{1} << low_bits) - 1;
  const std::uint64_t high_mask = (std::uint64_t{1} << high_bits) - 1;
  do {
    const std::uint64_t value = index;
    std::uint64_t low = value & low_mask;
    std::uint64_t high = value >> low_bits;
    for (std::uint64_t round = 0; round < rounds; round += 2) {
      high ^= philox(key, low, round).word[0] & high_mask;
      low ^= philox(key, high, round + 1).word[0] & low_mask;
    }
    index = high << low_bits | low;
  } while (index >= size);
  return index;
}

std::int64_t shuffled_position(std::uint64_t seed, std::int64_t samples_per_epoch,
                               std::int64_t sample_number) {
  FOURFOLD_EXPECT(samples_per_epoch >= 1 && sample_number >= 0);
  const std::uint64_t epoch = sample_number / samples_per_epoch;
  return permuted(seed, epoch, samples_per_epoch, sample_number % samples_per_epoch);
}

bool BatchPlan::valid() const noexcept {
  return global_batch >= 1 && micro_batch >= 1 && dp >= 1 && global_batch % (dp * micro_batch) == 0;
}

Range BatchPlan::micro_batch_samples(std::int64_t first_sample, std::int64_t dp_rank,
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

Range EvaluationPlan::micro_batch_samples(std::int64_t round, std::int64_t dp_rank) const {
  FOURFOLD_EXPECT(round >= 0 && round < rounds() && dp_rank >= 0 && dp_rank < dp);
  const std::int64_t begin = std::min(samples, (round * dp + dp_rank) * micro_batch);
  return {begin, std::min(micro_batch, samples - begin)};
}

}  // namespace fourfold::data
