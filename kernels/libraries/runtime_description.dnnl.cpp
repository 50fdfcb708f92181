// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/threads.hpp"

#include <fourfold/kernels/runtime.hpp>

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <string_view>

namespace fourfold::kernels {
namespace {

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

std::string description() {
  const int threads = runtime_thread_count();
  const dnnl_version_t* dnnl = dnnl_version();
  return fmt::format("{}, oneDNN {}.{}.{} ({}), {} thread{}", kokkos_description(), dnnl->major,
                     dnnl->minor, dnnl->patch, isa_name(), threads, threads == 1 ? "" : "s");
}

}  // namespace fourfold::kernels
