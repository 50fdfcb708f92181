// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "kokkos_facts.hpp"
#include "start.hpp"
#include "threads.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/runtime.hpp>

#include <Kokkos_Core.hpp>
#include <omp.h>

#include <atomic>
#include <cstdlib>

namespace fourfold::kernels {
namespace {

std::atomic<int> runtime_threads = 1;

/// OpenMP takes every core when nothing is said; a rank of ours takes one.
int threads_from_environment() {
  return std::getenv("OMP_NUM_THREADS") == nullptr ? 1 : omp_get_max_threads();
}

}  // namespace

Runtime::Runtime(int threads) {
  FOURFOLD_EXPECT(threads >= 0);
  FOURFOLD_EXPECT(!Kokkos::is_initialized());
  check_kokkos_threads();
  runtime_threads = threads > 0 ? threads : threads_from_environment();
  // Before Kokkos starts: a Kokkos with OpenMP takes its number of threads from there.
  use_runtime_threads();
  start_kokkos();
}

Runtime::~Runtime() {
  Kokkos::finalize();
}

void use_runtime_threads() {
  omp_set_num_threads(runtime_threads);
}

KokkosFacts kokkos_facts() {
  return {.version = KOKKOS_VERSION,
          .execution_space = Kokkos::DefaultExecutionSpace::name(),
          .threads = runtime_threads};
}

}  // namespace fourfold::kernels
