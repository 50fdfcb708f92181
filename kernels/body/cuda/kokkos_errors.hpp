// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>

#include <cuda_check.hpp>

#include <new>
#include <stdexcept>

namespace fourfold::kernels {

/// Calls `work`, which has Kokkos call CUDA. Of launches Kokkos does not ask what became of them;
/// other failures it throws without the device's name, and of a device that has failed it ends the
/// process. So all are told here, as check_cuda() does.
/// @param call  what Kokkos does: "cudaLaunchKernel"
template <class Work>
void with_errors_told(const char* call, const Work& work) {
  device::check_device();
  static_cast<void>(cudaGetLastError());  // of a call whose failure nobody minds, not of this one
  try {
    work();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    device::check_cuda(cudaErrorMemoryAllocation, call);
  } catch (const std::runtime_error&) {
    device::check_cuda(cudaGetLastError(), call);
    throw;
  }
  device::check_cuda(cudaGetLastError(), call);
}

}  // namespace fourfold::kernels
