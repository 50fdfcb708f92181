// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What an update leaves beside the masters for products to read.
#pragma once

#include "vectors/divisor.hpp"
#include "vectors/float16.hpp"
#include "vectors/packs.hpp"
#include "vectors/storage.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/kernels/optimizer.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <optional>

namespace fourfold::kernels {

// Which random bits round an element: the definition that the fast and the reference body share. A
// change here changes every run that rounds at random.

/// Elements that share a block of random words, of which each gets 16 bits.
inline constexpr int rounding_block_elements = 8;

FOURFOLD_HOST_DEVICE PhiloxBlock rounding_block(PhiloxKey key, std::int64_t number) {
  const std::uint64_t index = number;
  return philox(key, index / rounding_block_elements);
}

/// Of the element with this number: below 2^16. No array is indexed, so that all stays in
/// registers.
FOURFOLD_HOST_DEVICE std::uint32_t rounding_bits(const PhiloxBlock& block, std::int64_t number) {
  const std::uint32_t place = number & (rounding_block_elements - 1);
  const std::uint32_t low = place < 2 ? block.word[0] : block.word[1];
  const std::uint32_t high = place < 6 ? block.word[2] : block.word[3];
  const std::uint32_t word = place < 4 ? low : high;
  return (word >> (place % 2 * 16)) & 0xFFFFU;
}

/// Nothing: the masters themselves are read.
struct NoCopy {
  /// Whether put() wants random bits.
  static constexpr bool is_random = false;
  /// Whether put_run() may write as many elements as a pack of f32 has.
  static bool at_runs() { return true; }

  KOKKOS_FORCEINLINE_FUNCTION void put(std::int64_t /*i*/, float /*master*/,
                                       std::uint32_t /*bits*/) const {}
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void put_run(std::int64_t /*i*/, const float (&/*master*/)[n]) const {
  }
};

/// Masters rounded to the nearest W.
template <class W>
struct NearestCopy {
  W* weight;

  static constexpr bool is_random = false;
  bool at_runs() const { return at_packs<pack_elements<float>>(weight); }

  KOKKOS_FORCEINLINE_FUNCTION void put(std::int64_t i, float master, std::uint32_t /*bits*/) const {
    store(weight[i], master);
  }
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void put_run(std::int64_t i, const float (&master)[n]) const {
    save<n>(weight + i, master);
  }
};

/// The number, exact in bf16, that `value` becomes: of the 2^16 numbers of bits those make it the
/// neighbour farther from zero that carry out of the word's lower half.
KOKKOS_FORCEINLINE_FUNCTION float rounded_at_random(float value, std::uint32_t bits) {
  const std::uint32_t nan = value != value ? 0x7FC00000U : 0U;
  return float_from_bits(((float_bits(value) + bits) | nan) & 0xFFFF0000U);
}

/// Masters rounded to bf16 at random.
class StochasticCopy {
 public:
  StochasticCopy(BFloat16* weight, const StochasticRounding& rounding)
      : weight_(weight),
        key_(rounding.key),
        first_(rounding.first),
        begin_(rounding.begin),
        row_stride_(rounding.row_stride),
        row_(rounding.row_elements) {}

  static constexpr bool is_random = true;
  bool at_runs() const { return at_packs<pack_elements<float>>(weight_); }

  /// Random bits for elements [i, i + count).
  KOKKOS_FORCEINLINE_FUNCTION void draw(std::int64_t i, std::int64_t count,
                                        std::uint32_t* bits) const {
    std::int64_t drawn = -1;
    PhiloxBlock block{};
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t number = number_of(i + k);
      if (number / rounding_block_elements != drawn) {
        drawn = number / rounding_block_elements;
        block = rounding_block(key_, number);
      }
      bits[k] = rounding_bits(block, number);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void put(std::int64_t i, float master, std::uint32_t bits) const {
    store(weight_[i], rounded_at_random(master, bits));
  }

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void put_run(std::int64_t i, const float (&master)[n]) const {
    float rounded[n];
    const std::int64_t number = number_of(i);
    if (number_of(i + n - 1) == number + n - 1 &&
        number % rounding_block_elements + n <= rounding_block_elements) {
      const PhiloxBlock block = rounding_block(key_, number);
      for (int k = 0; k < n; ++k) {
        rounded[k] = rounded_at_random(master[k], rounding_bits(block, number + k));
      }
    } else {
      for (int k = 0; k < n; ++k) {
        const std::int64_t own = number_of(i + k);
        rounded[k] = rounded_at_random(master[k], rounding_bits(rounding_block(key_, own), own));
      }
    }
    save<n>(weight_ + i, rounded);
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t number_of(std::int64_t i) const {
    const std::int64_t j = begin_ + i;
    const std::int64_t row = row_.quotient(j);
    return first_ + row * row_stride_ + (j - row * row_.value());
  }

  BFloat16* weight_;
  PhiloxKey key_;
  std::int64_t first_;
  std::int64_t begin_;
  std::int64_t row_stride_;
  Divisor row_;
};

/// element(i, bits) for i in [begin, end), on a host.
template <class Copy, class Element>
KOKKOS_FORCEINLINE_FUNCTION void for_each_copied(const Copy& copy, std::int64_t begin,
                                                 std::int64_t end, const Element& element) {
  if constexpr (Copy::is_random) {
    constexpr std::int64_t at_once = 64;
    std::uint32_t bits[at_once];
    for (std::int64_t first = begin; first < end; first += at_once) {
      const std::int64_t count = end - first < at_once ? end - first : at_once;
      copy.draw(first, count, bits);
#pragma omp simd
      for (std::int64_t k = 0; k < count; ++k) {
        element(first + k, bits[k]);
      }
    }
  } else {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      element(i, 0U);
    }
  }
}

/// Calls body(copy). @pre weights that are rounded at random are bf16
template <class Body>
void with_copy(TensorView weight, const std::optional<StochasticRounding>& rounding,
               const Body& body) {
  if (!weight) {
    body(NoCopy{});
  } else if (rounding) {
    FOURFOLD_EXPECT(weight.dtype() == DType::bf16);
    body(StochasticCopy(weight.as<BFloat16>(), *rounding));
  } else {
    with_storage(weight.dtype(), [&]<class W>(W) { body(NearestCopy<W>{weight.as<W>()}); });
  }
}

}  // namespace fourfold::kernels
