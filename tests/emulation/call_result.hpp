// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What calls of the emulated runtime return.
#pragma once

#include "planned_failure.hpp"

#include <cuda_runtime_api.h>

namespace fourfold::emulated {

/// Remembers a failure for cudaGetLastError(). @return `result`
cudaError_t note(cudaError_t result);
/// The last failure of this thread, once.
cudaError_t take_last_error();

/// The start of each call: whether a failure is planned for it.
#define FAIL_AS_PLANNED(call)                                                           \
  if (const cudaError_t planned = fourfold::emulated::planned_failure(call); planned) { \
    return fourfold::emulated::note(planned);                                           \
  }
}  // namespace fourfold::emulated
