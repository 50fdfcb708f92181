// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fourfold::io {

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

}  // namespace fourfold::io
