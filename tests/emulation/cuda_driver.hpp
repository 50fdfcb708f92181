// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The functions of the CUDA driver that fourfold calls, for an emulated device.
#pragma once

#include <string_view>

namespace fourfold::emulated {

/// CUDA's first call: what the environment says now of how kernels are loaded holds from here on.
void begin_driver();

/// One of the driver's functions: for memory in parts, which lets memory come without addresses and
/// addresses without memory, and how kernels are loaded; nullptr for any other name.
void* driver_function(std::string_view name);

}  // namespace fourfold::emulated
