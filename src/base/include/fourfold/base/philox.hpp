// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random
/// numbers: as easy as 1, 2, 3", SC'11). A number is a pure function of (key, counter), so every
/// mesh draws the same bits and nothing about random numbers is ever saved. Header-only and free of
/// library calls, so kernels of any backend inline it.
#pragma once

#include <array>
#include <cstdint>

#if defined(__CUDACC__)
#define FOURFOLD_PHILOX_FUNCTION __host__ __device__ inline
#else
#define FOURFOLD_PHILOX_FUNCTION inline
#endif

namespace fourfold {

/// What a stream of random numbers is for. Part of every key: two uses never share numbers.
enum class RandomUse : std::uint32_t {
  initial_weight = 1,
  dropout = 2,
  sample_order = 3,
  sampling = 4,  ///< drawing tokens when generating text
  test = 5,
  low_rank_factor = 6,  ///< where compression of gradients begins
  weight_rounding = 7,
  matmul_check = 8,  ///< signs and rows by which `verify` looks at products
};

struct PhiloxKey {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};

struct PhiloxBlock {
  std::uint32_t word[4];
};

FOURFOLD_PHILOX_FUNCTION std::uint32_t low_word(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
FOURFOLD_PHILOX_FUNCTION std::uint32_t high_word(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

/// SplitMix64's finalizer: spreads structured integers over 64 bits.
FOURFOLD_PHILOX_FUNCTION std::uint64_t mix64(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

/// Key for `use` under the run's `seed`; `salt` tells apart streams of one use (a parameter's name
/// hash, a layer).
FOURFOLD_PHILOX_FUNCTION PhiloxKey philox_key(std::uint64_t seed, RandomUse use,
                                              std::uint64_t salt = 0) {
  const std::uint64_t mixed =
      mix64(mix64(seed) ^ (static_cast<std::uint64_t>(use) << 56) ^ mix64(salt + 0x51ed2701ULL));
  return {low_word(mixed), high_word(mixed)};
}

/// Four 32-bit words for a 128-bit counter given as two 64-bit halves.
FOURFOLD_PHILOX_FUNCTION PhiloxBlock philox(PhiloxKey key, std::uint64_t counter_low,
                                            std::uint64_t counter_high = 0) {
  std::uint32_t c0 = low_word(counter_low);
  std::uint32_t c1 = high_word(counter_low);
  std::uint32_t c2 = low_word(counter_high);
  std::uint32_t c3 = high_word(counter_high);
  std::uint32_t k0 = key.low;
  std::uint32_t k1 = key.high;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = 0xD2511F53ULL * c0;
    const std::uint64_t product1 = 0xCD9E8D57ULL * c2;
    const std::uint32_t n0 = high_word(product1) ^ c1 ^ k0;
    const std::uint32_t n2 = high_word(product0) ^ c3 ^ k1;
    c1 = low_word(product1);
    c3 = low_word(product0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return {{c0, c1, c2, c3}};
}

/// Uniform in (0, 1): the middle of one of 2^23 cells, so never 0 and never 1, and exact in float.
FOURFOLD_PHILOX_FUNCTION float uniform_float(std::uint32_t word) {
  return (static_cast<float>(word >> 9) + 0.5F) * (1.0F / 8388608.0F);
}

/// A standard normal number for logical element `element` of the stream `key` (Box-Muller in
/// double: the same bits on every mesh because each element is drawn on its own; hosts with another
/// libm may differ in the last bit).
float normal_float(PhiloxKey key, std::uint64_t element);

/// Hash of a name for use as a salt (FNV-1a 64).
std::uint64_t name_salt(const char* text, std::size_t length);

}  // namespace fourfold
