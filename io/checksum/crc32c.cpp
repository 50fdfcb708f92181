// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "checksum/crc32c_polynomial.hpp"
#include "checksum/crc32c_x86.hpp"

#include <fourfold/io/digest.hpp>

#include <array>
#include <cstring>

namespace fourfold::io {
namespace {

using namespace crc32c_polynomial;

/// Table k holds, for each byte value, its remainder after k more bytes ("slicing by eight").
using Slices = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Slices make_slices() {
  Slices slices{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = times_x(crc);
    }
    slices[0][byte] = crc;
  }
  for (std::size_t k = 1; k < slices.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t previous = slices[k - 1][byte];
      slices[k][byte] = (previous >> 8) ^ slices[0][previous & 0xffU];
    }
  }
  return slices;
}

constexpr Slices slices = make_slices();

std::uint32_t update_by_table(std::uint32_t state, const std::byte* data, std::size_t count) {
  for (; count >= 8; data += 8, count -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    word ^= state;
    state = 0;
    for (std::size_t k = 0; k < 8; ++k) {
      state ^= slices[7 - k][(word >> (8 * k)) & 0xffU];
    }
  }
  for (; count != 0; ++data, --count) {
    state = (state >> 8) ^ slices[0][(state ^ static_cast<std::uint32_t>(*data)) & 0xffU];
  }
  return state;
}

using Update = std::uint32_t (*)(std::uint32_t, const std::byte*, std::size_t);

Update fastest_update() {
#if defined(__x86_64__)
  if (can_fold_crc32c()) {
    return crc32c_by_folding;
  }
  if (__builtin_cpu_supports("sse4.2") != 0) {
    return crc32c_by_instruction;
  }
#endif
  return update_by_table;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  static const Update update = fastest_update();
  return ~update(~crc, bytes.data(), bytes.size());
}

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  return ~update_by_table(~crc, bytes.data(), bytes.size());
}

std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b,
                             std::uint64_t bytes_b) noexcept {
  return multiply(power_of_bytes(bytes_b), crc_a) ^ crc_b;
}

}  // namespace fourfold::io
