// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fourfold::kernels {

/// Whether a result replaces what is in the output or is added to it.
enum class Write : std::uint8_t { replace, accumulate };

/// Where a kernel runs that can run in both places, to the same bits on a host build.
enum class MemorySpace : std::uint8_t {
  device,  ///< over device memory, ordered on the stream
  host,    ///< over host memory, in the calling thread; done when the call returns
};

}  // namespace fourfold::kernels
