// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fourfold::io {

/// Fingerprint of the values of a logical tensor that does not depend on how the tensor is cut:
///
///   D = sum over elements i of P(i / 256) * Q(i % 256) * (bits_i + 1)  mod 2^64
///   P(b) = mix64(b + p) | 1,  Q(j) = mix64(j + q) | 1
///
/// with i the global row-major index, bits_i the element's bits as an unsigned integer and mix64
/// the finalizer of SplitMix64 (fourfold/base/philox.hpp). Two pairs of keys (p, q) make 128 bits.
/// The digest of a tensor is the sum of the digests of any boxes that cover it once, so two
/// checkpoints of different meshes are compared without moving their tensors. A change of one
/// element always shows (its factor is odd). Not a cryptographic hash.
struct Digest {
  std::uint64_t low = 0;   ///< p = 0, q = 0xbb67ae8584caa73b
  std::uint64_t high = 0;  ///< p = 0x6a09e667f3bcc909, q = 0x3c6ef372fe94f82b

  Digest& operator+=(const Digest& other) noexcept {
    low += other.low;
    high += other.high;
    return *this;
  }
  friend bool operator==(const Digest&, const Digest&) = default;
  /// 32 hexadecimal digits, high first.
  std::string str() const;
  /// Inverse of str().
  static std::optional<Digest> from_text(std::string_view text) noexcept;
};

/// Digest of `box` of a tensor of `shape`. `data` holds the box densely, in host memory; any
/// element type. Deterministic; any alignment.
/// @pre data.elements() == box.elements(); the box lies in the tensor
Digest digest_of_box(const Shape& shape, const Box& box, ConstTensorView data);

/// CRC-32C (Castagnoli, polynomial 0x1EDC6F41, reflected, initial value and final xor 0xffffffff:
/// the one of iSCSI, TensorBoard and TensorStore; "123456789" gives 0xe3069283).
///
/// Folds with carry-less products of 512 bits where the CPU has them, else uses its instruction
/// (three interleaved streams), else tables; the result is the same. @param crc  the CRC of what
/// came before, to go on from: crc32c(b, crc32c(a)) is the CRC of a followed by b.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0) noexcept;

/// The same by tables only: the reference for the tests and what CPUs without the instruction use.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t crc = 0) noexcept;

/// CRC of a followed by b, from the CRC of each and the length of b. O(log length).
std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b,
                             std::uint64_t bytes_b) noexcept;

// A text of ours that people may change: with a sum it shows whether they did. Local.

/// A text with a last line that has the CRC-32C of all before it, as a comment after "#".
std::string with_sum(std::string text);
/// Whether that line is there and fits: nobody has changed anything since.
bool sum_holds(std::string_view text);

}  // namespace fourfold::io
