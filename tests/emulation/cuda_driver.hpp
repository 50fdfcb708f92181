// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace fourfold::emulated {

/// One of the driver's functions for memory in parts, which lets memory come without addresses and
/// addresses without memory; nullptr for any other name.
void* driver_memory_function(std::string_view name);

}  // namespace fourfold::emulated
