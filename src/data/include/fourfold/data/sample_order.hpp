// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

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
class Permutation {
 public:
  /// @pre size >= 1
  Permutation(std::uint64_t seed, std::uint64_t epoch, std::int64_t size);

  std::int64_t size() const noexcept { return size_; }
  /// Where element `index` goes. @pre 0 <= index < size()
  std::int64_t operator()(std::int64_t index) const;

 private:
  std::uint64_t round_trip(std::uint64_t value) const noexcept;

  std::int64_t size_;
  std::uint32_t key_low_;
  std::uint32_t key_high_;
  int high_bits_;
  int low_bits_;
};

/// The order in which a run sees its samples: a closed form of (seed, sample number). No index is
/// built or stored; every rank of every mesh names any sample in O(1), and a restart continues with
/// the very next one because a sample number is all there is to remember.
///
/// Sample number n of the run lies in epoch e = n / samples_per_epoch and is found at position
/// Permutation(seed, e, samples_per_epoch)(n mod samples_per_epoch): every epoch visits every
/// sample once, in another order.
class SampleOrder {
 public:
  /// @pre samples_per_epoch >= 1
  SampleOrder(std::uint64_t seed, std::int64_t samples_per_epoch);

  std::int64_t samples_per_epoch() const noexcept { return samples_per_epoch_; }
  std::int64_t epoch(std::int64_t sample_number) const;
  /// Position in the data set, in [0, samples_per_epoch). @pre sample_number >= 0
  std::int64_t position(std::int64_t sample_number) const;

 private:
  std::uint64_t seed_;
  std::int64_t samples_per_epoch_;
};

}  // namespace fourfold::data
