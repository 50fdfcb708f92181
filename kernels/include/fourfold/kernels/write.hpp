// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fourfold::kernels {

/// Whether a result replaces what is in the output or is added to it.
enum class Write : std::uint8_t { replace, accumulate };

}  // namespace fourfold::kernels
