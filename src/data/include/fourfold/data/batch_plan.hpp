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

/// Which samples each rank takes in each step. A step trains on the sample numbers [f, f + G), G =
/// global_batch, whatever the mesh, where f is the number of samples trained on before: position r
/// of DP on the dp axis takes the r-th run of G / DP numbers, and cuts it into micro-batches of M
/// in order:
///     sample = f + r (G / DP) + a M + i,   0 <= a < G / (DP M),   0 <= i < M.
/// Only the dp axis divides samples. All ranks of a tp or pp group, and all cp ranks (which later
/// hold pieces of the same sequences), ask with the same dp position and so take the same samples.
struct BatchPlan {
  std::int64_t global_batch = 1;  ///< samples per step, over all ranks
  std::int64_t micro_batch = 1;   ///< samples per forward pass of one rank
  std::int64_t dp = 1;            ///< degree of the dp axis

  /// Each number is at least 1 and global_batch a multiple of dp x micro_batch. A run file that
  /// is not so is refused, with the sizes that work, when it is read.
  bool valid() const noexcept;

  std::int64_t samples_per_rank() const noexcept { return global_batch / dp; }
  /// Micro-batches per rank and step.
  std::int64_t accumulation_steps() const noexcept { return global_batch / (dp * micro_batch); }
  /// Sample numbers of micro-batch `accumulation_step` at position `dp_rank` in a step that begins
  /// with `first_sample`. @pre valid(), first_sample >= 0, dp_rank in [0, dp), accumulation_step in
  /// range
  SampleRange micro_batch_samples(std::int64_t first_sample, std::int64_t dp_rank,
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
