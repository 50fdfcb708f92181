// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "start.hpp"
#include "threads.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/kernels/runtime.hpp>

#include <Kokkos_Core.hpp>
#include <omp.h>

#include <atomic>
#include <exception>
#include <string>

namespace fourfold::kernels {
namespace {

std::atomic<int> runtime_threads = 1;
int exceptions_at_start = 0;  ///< under way

}  // namespace

Runtime::Runtime(int threads) {
  FOURFOLD_EXPECT(threads >= 0);
  FOURFOLD_EXPECT(!Kokkos::is_initialized());
  check_kokkos_threads();
  runtime_threads = threads > 0 ? threads : threads_from_environment();
  // Before Kokkos starts: a Kokkos with OpenMP takes its number of threads from there.
  use_runtime_threads();
  exceptions_at_start = std::uncaught_exceptions();
  start_kokkos();
}

/// While an exception unwinds a device may have failed, of which Kokkos makes an abort that nobody
/// explains, or be in a message from a rank that is gone: Kokkos waits for all that a device does.
/// The process ends soon, and with it what Kokkos has taken.
Runtime::~Runtime() {
  if (!device::has_own_memory || std::uncaught_exceptions() == exceptions_at_start) {
    stop_kokkos();
  } else {
    leave_kokkos();
  }
}

void use_runtime_threads() {
  omp_set_num_threads(runtime_threads);
}

int runtime_thread_count() {
  return runtime_threads;
}

/// Not by fmt, which nvcc cannot read.
std::string kokkos_description() {
  return "Kokkos " + std::to_string(KOKKOS_VERSION / 10000) + "." +
         std::to_string(KOKKOS_VERSION / 100 % 100) + "." + std::to_string(KOKKOS_VERSION % 100) +
         " (" + Kokkos::DefaultExecutionSpace::name() + ")";
}

}  // namespace fourfold::kernels
