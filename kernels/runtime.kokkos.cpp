// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "threads.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/runtime.hpp>

#include <Kokkos_Core.hpp>
#include <fmt/format.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace fourfold::kernels {
namespace {

std::atomic<int> runtime_threads = 1;

/// OpenMP takes every core when nothing is said; a rank of ours takes one.
int threads_from_environment() {
  return std::getenv("OMP_NUM_THREADS") == nullptr ? 1 : omp_get_max_threads();
}

std::string_view isa_name() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "SSE4.1";
    case dnnl::cpu_isa::avx:
      return "AVX";
    case dnnl::cpu_isa::avx2:
      return "AVX2";
    case dnnl::cpu_isa::avx2_vnni:
      return "AVX2 with VNNI";
    case dnnl::cpu_isa::avx512_core:
      return "AVX-512";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "AVX-512 with VNNI";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "AVX-512 with BF16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "AVX-512 with AMX";
    default:
      return "other";
  }
}

}  // namespace

Runtime::Runtime(int threads) {
  FOURFOLD_EXPECT(threads >= 0);
  FOURFOLD_EXPECT(!Kokkos::is_initialized());
  runtime_threads = threads > 0 ? threads : threads_from_environment();
  // Before Kokkos starts: a Kokkos with OpenMP takes its number of threads from there.
  use_runtime_threads();
  Kokkos::initialize();
}

Runtime::~Runtime() {
  Kokkos::finalize();
}

void use_runtime_threads() {
  omp_set_num_threads(runtime_threads);
}

std::string description() {
  const dnnl_version_t* dnnl = dnnl_version();
  return fmt::format("Kokkos {}.{}.{} ({}), oneDNN {}.{}.{} ({}), {} thread{}",
                     KOKKOS_VERSION / 10000, KOKKOS_VERSION / 100 % 100, KOKKOS_VERSION % 100,
                     Kokkos::DefaultExecutionSpace::name(), dnnl->major, dnnl->minor, dnnl->patch,
                     isa_name(), runtime_threads.load(), runtime_threads == 1 ? "" : "s");
}

}  // namespace fourfold::kernels
