// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which random bits round an element: the definition that the fast and the reference body share. A
/// change here changes every run that rounds at random.
#pragma once

#include "vectors/host_device.hpp"

#include <fourfold/base/philox.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// Elements that share a block of random words, of which each gets 16 bits.
inline constexpr int rounding_block_elements = 8;

FOURFOLD_HOST_DEVICE PhiloxBlock rounding_block(PhiloxKey key, std::int64_t number) {
  return philox(key, static_cast<std::uint64_t>(number) / rounding_block_elements);
}

/// Of the element with this number: below 2^16. No array is indexed, so that all stays in
/// registers.
FOURFOLD_HOST_DEVICE std::uint32_t rounding_bits(const PhiloxBlock& block, std::int64_t number) {
  const auto place = static_cast<std::uint32_t>(number) % rounding_block_elements;
  const std::uint32_t low = place < 2 ? block.word[0] : block.word[1];
  const std::uint32_t high = place < 6 ? block.word[2] : block.word[3];
  const std::uint32_t word = place < 4 ? low : high;
  return (word >> (place % 2 * 16)) & 0xFFFFU;
}

}  // namespace fourfold::kernels
