// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention_backend.hpp"

#include <cstddef>
#include <string>

namespace fourfold::kernels {

/// cuDNN as it was found when it was asked for first. Nothing links it: programs start where there
/// is none, and take the one that is there when they run.
struct CudnnLibrary {
  std::size_t version = 0;  ///< 91900 for 9.19.0; 0: none
  std::string defect;       ///< why it does not serve, and what to do; empty: it does
};

/// @returns the same for all threads; finds the library in the first call
const CudnnLibrary& cudnn_library();

/// Why cuDNN has no engine for a call on a device that need not be here; empty when it has one. For
/// tests: cuDNN knows a device by a text in JSON, and finds engines with no more than a
/// libcuda.so.1 that it can load.
std::string refused_by_cudnn(const AttentionCall& call, const std::string& device_json,
                             int compute_capability);

}  // namespace fourfold::kernels
