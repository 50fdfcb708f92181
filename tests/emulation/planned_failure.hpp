// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace fourfold::emulated {

/// What FOURFOLD_EMULATED_GPU_FAIL wants this call of `call` to return; cudaSuccess: nothing.
cudaError_t planned_failure(const char* call);

}  // namespace fourfold::emulated
