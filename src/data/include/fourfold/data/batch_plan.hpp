// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fourfold::data {

/// Consecutive sample numbers [begin, begin + count).
struct SampleRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t end() const noexcept { return begin + count; }
  friend bool operator==(const SampleRange&, const SampleRange&) = default;
};

/// Which samples each rank takes in each step. Step s trains on the sample numbers
/// [s G, (s + 1) G), G = global_batch, whatever the mesh: position r of DP on the dp axis takes the
/// r-th run of G / DP numbers, and cuts it into micro-batches of M in order:
///     sample = s G + r (G / DP) + a M + i,   0 <= a < G / (DP M),   0 <= i < M.
/// Only the dp axis divides samples. All ranks of a tp or pp group, and all cp ranks (which later
/// hold pieces of the same sequences), ask with the same dp position and so take the same samples.
struct BatchPlan {
  std::int64_t global_batch = 1;  ///< samples per step, over all ranks
  std::int64_t micro_batch = 1;   ///< samples per forward pass of one rank
  std::int64_t dp = 1;            ///< degree of the dp axis

  /// @throws UserError (config) when a number is < 1 or global_batch is not a multiple of
  ///   dp x micro_batch; the message names the nearest sizes that work
  void validate() const;

  std::int64_t samples_per_rank() const noexcept { return global_batch / dp; }
  /// Micro-batches per rank and step.
  std::int64_t accumulation_steps() const noexcept { return global_batch / (dp * micro_batch); }
  /// Sample numbers of micro-batch `accumulation_step` of `step` at position `dp_rank`.
  /// @pre validate() passes, step >= 0, dp_rank in [0, dp), accumulation_step in range
  SampleRange micro_batch_samples(std::int64_t step, std::int64_t dp_rank,
                                  std::int64_t accumulation_step) const;
};

/// How an evaluation goes once, in order, through `samples` samples: round k gives position r of DP
/// the micro-batch that begins at (k DP + r) M. Every rank makes the same number of rounds, so
/// collectives match; in the last round a range can be short or empty.
struct EvaluationPlan {
  std::int64_t samples = 0;
  std::int64_t micro_batch = 1;
  std::int64_t dp = 1;

  std::int64_t rounds() const noexcept;
  /// @pre 0 <= round < rounds() and 0 <= dp_rank < dp
  SampleRange micro_batch_samples(std::int64_t round, std::int64_t dp_rank) const;
};

}  // namespace fourfold::data
