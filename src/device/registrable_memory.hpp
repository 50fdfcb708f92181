// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Memory of the device of which the driver gives handles away (cuMemCreate): what NCCL needs to
/// let other devices of a node, or the switch between them, reach into it once it is registered.
/// Memory of cudaMalloc has no handle.
#pragma once

#include <cstddef>

namespace fourfold::device {

/// On the bound device of the calling thread; not zeroed. It takes whole pages, of 2 MiB on current
/// devices.
/// @return nullptr where driver or device can do no such thing
/// @throws SystemError as check_cuda()
void* allocate_registrable(std::size_t bytes);

/// Waits for all work of the device.
/// @param bytes  as they were asked for
void free_registrable(void* data, std::size_t bytes) noexcept;

}  // namespace fourfold::device
