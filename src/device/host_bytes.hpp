// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Memory of the host, with and without devices.
#pragma once

#include <fourfold/device/device.hpp>

#include <cstddef>

namespace fourfold::device {

inline constexpr std::size_t alignment_bytes = 256;  ///< of every buffer, as cudaMalloc gives it
/// `bytes` up to the next multiple of that; less than `bytes` where there is none.
constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

/// Zeroes. @throws SystemError (config) when the system refuses
NativeHandle allocate_host(std::size_t bytes);

/// This machine.
MemoryOwner host_owner();

}  // namespace fourfold::device
