// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vendor_attention.hpp"

#include <string>

namespace fourfold::kernels {

/// Why cuDNN has no engine for a call on a device that need not be here; empty when it has one. For
/// tests: cuDNN knows a device by a text in JSON, and finds engines with no more than a
/// libcuda.so.1 that it can load.
std::string refused_by_cudnn(const AttentionCall& call, const std::string& device_json,
                             int compute_capability);

}  // namespace fourfold::kernels
