// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/philox.hpp>

#include <cmath>
#include <numbers>

namespace fourfold {

float normal_float(PhiloxKey key, std::uint64_t element) {
  const PhiloxBlock block = philox(key, element);
  const double radius_word = uniform_float(block.word[0]);
  const double angle_word = uniform_float(block.word[1]);
  return static_cast<float>(std::sqrt(-2.0 * std::log(radius_word)) *
                            std::cos(2.0 * std::numbers::pi * angle_word));
}

std::uint64_t name_salt(const char* text, std::size_t length) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (std::size_t i = 0; i < length; ++i) {
    const unsigned char byte = text[i];
    hash = (hash ^ byte) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace fourfold
