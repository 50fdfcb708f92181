// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Functions of the CUDA driver by their names. Linked, they would need libcuda.so.1 for a program
/// to start at all, and where there is no driver the loader would say so, not we.
#pragma once

#include <cuda_runtime_api.h>

namespace fourfold::device {

/// @param version  of CUDA that brought the wanted form of the function (12000: 12.0): later ones
///   of the same name may take other arguments
/// @return nullptr where the driver lacks it, or there is none
template <class Function>
Function* driver_function(const char* name, unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t result =
      cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &status);
  const bool is_found = result == cudaSuccess && status == cudaDriverEntryPointSuccess;
  return is_found ? reinterpret_cast<Function*>(found) : nullptr;
}

}  // namespace fourfold::device
