// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>

#include <cuda_runtime_api.h>

namespace fourfold::device {

inline cudaStream_t native(StreamRef stream) noexcept {
  return static_cast<cudaStream_t>(stream.native());
}

/// The default stream's work is done when the call that enqueues it returns.
inline void finish_if_default(StreamRef stream) {
  if (stream == StreamRef{}) {
    stream.synchronize();
  }
}

}  // namespace fourfold::device
