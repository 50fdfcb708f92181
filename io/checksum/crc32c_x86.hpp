// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>

namespace fourfold::io {

/// Both take the register as it is inside (not inverted) and give what it is after `count` bytes.

/// @pre the processor has SSE 4.2
std::uint32_t crc32c_by_instruction(std::uint32_t state, const std::byte* data, std::size_t count);

bool can_fold_crc32c();
/// @pre can_fold_crc32c()
std::uint32_t crc32c_by_folding(std::uint32_t state, const std::byte* data, std::size_t count);

}  // namespace fourfold::io

#endif
