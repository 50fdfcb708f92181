// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>

#include <cstdint>

namespace fourfold::data {

/// A bijection of [0, size) chosen by (seed, epoch), evaluated in O(1) without any table.
///
/// The index is cut into a high half of a = floor(b/2) and a low half of b - a bits, where 2^b is
/// the smallest power of two >= size. Eight rounds of an unbalanced Feistel network,
///     even rounds: high ^= F(round, low),   odd rounds: low ^= F(round, high),
/// permute [0, 2^b); F is the low bits of word 0 of Philox4x32-10 with the key
/// philox_key(seed, RandomUse::sample_order, epoch) and the counter (half, round). Results >= size
/// are sent through again until one falls inside (cycle walking: fewer than two passes on average,
/// because 2^b < 2 size). The order is part of the meaning of a checkpoint: it must never change.
/// @return where element `index` goes
/// @pre size >= 1 and 0 <= index < size
std::int64_t permuted(std::uint64_t seed, std::uint64_t epoch, std::int64_t size,
                      std::int64_t index);

/// The order in which a run sees its samples: a closed form of (seed, sample number). No index is
/// built or stored; every rank of every mesh names any sample in O(1), and a restart continues with
/// the very next one because a sample number is all there is to remember.
///
/// Sample number n of the run lies in epoch e = n / samples_per_epoch and is found at position
/// permuted(seed, e, samples_per_epoch, n mod samples_per_epoch): every epoch visits every
/// sample once, in another order.
/// @return the position in the data set, in [0, samples_per_epoch)
/// @pre samples_per_epoch >= 1 and sample_number >= 0
std::int64_t shuffled_position(std::uint64_t seed, std::int64_t samples_per_epoch,
                               std::int64_t sample_number);

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
  Range micro_batch_samples(std::int64_t first_sample, std::int64_t dp_rank,
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
  Range micro_batch_samples(std::int64_t round, std::int64_t dp_rank) const;
};

}  // namespace fourfold::data
