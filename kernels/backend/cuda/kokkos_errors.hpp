// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What becomes of Kokkos's failures. Of launches it does not ask what became of them; other
/// failures it throws without the device's name, or makes an allocation's of them; and where a
/// device has failed it ends the process.
#pragma once

#include <fourfold/base/error.hpp>

#include <cuda_check.hpp>

#include <exception>
#include <new>
#include <stdexcept>
#include <tuple>

namespace fourfold::kernels {

/// While it lives an abort on this thread is Kokkos's: it is told as a fault of the node, and the
/// process ends with that code.
class KokkosCall {
 public:
  explicit KokkosCall(const char* call) noexcept;
  ~KokkosCall();
  KokkosCall(const KokkosCall&) = delete;
  KokkosCall& operator=(const KokkosCall&) = delete;
};
/// For the process: from here on aborts are looked at.
void watch_kokkos_aborts();

/// Tells what Kokkos has thrown as check_cuda() would. @throws SystemError, always
[[noreturn]] void tell_kokkos_failure(const char* call, const std::exception& failure,
                                      bool of_memory);

/// Calls `work`, which has Kokkos call CUDA; its failures are told as check_cuda() does.
/// @param call  what Kokkos does: "cudaLaunchKernel"
template <class Work>
void with_errors_told(const char* call, const Work& work) {
  device::check_device();
  std::ignore = cudaGetLastError();  // of a call whose failure nobody minds, not of this one
  try {
    const KokkosCall kokkos_call(call);
    work();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc& failure) {
    tell_kokkos_failure(call, failure, true);
  } catch (const std::runtime_error& failure) {
    tell_kokkos_failure(call, failure, false);
  }
  device::check_cuda(cudaGetLastError(), call);
}

/// Does nothing. Who calls it has the functions of driver_entry.cuda.cpp linked, before the linker
/// comes to Kokkos and would look for them in the driver.
void stand_in_for_driver();

}  // namespace fourfold::kernels
