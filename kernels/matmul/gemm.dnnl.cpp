// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "enqueue.hpp"
#include "matmul_algorithm.hpp"
#include "runtime/threads.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <cstdint>

namespace fourfold::kernels {
namespace {

/// y_TO += bias_O; rows of y are y_row apart.
void add_bias(float* y_TO, std::int64_t y_row, const float* bias_O, std::int64_t tokens,
              std::int64_t outputs) {
#pragma omp parallel for schedule(static)
  for (std::int64_t t = 0; t < tokens; ++t) {
    float* row = y_TO + t * y_row;
    for (std::int64_t o = 0; o < outputs; ++o) {
      row[o] += bias_O[o];
    }
  }
}

void multiply_now(DType dtype, const Gemm& product) {
  use_runtime_threads();
  if (dtype == DType::f32) {
    f32_product(product);
  } else if (dtype == DType::bf16 && has_native_bf16()) {
    bf16_product_native(product);
  } else {
    widened_product(dtype, product);
  }
}

}  // namespace

void multiply(DType dtype, const Gemm& product, device::StreamRef stream) {
  FOURFOLD_EXPECT(product.epilogue == Epilogue::none);
  enqueue(stream, [=] { multiply_now(dtype, product); });
}

void multiply_with_epilogue(DType dtype, const Gemm& product, const EpilogueKernels& kernels,
                            device::StreamRef stream) {
  kernels.apart(dtype, product, stream);
}

std::string matmul_library() {
  return {};
}
void forget_algorithms() {}

void f32_product(const Gemm& p) {
  FOURFOLD_EXPECT(p.c_dtype == DType::f32 && p.c_row >= p.n);
  FOURFOLD_EXPECT(p.a_row >= (p.a_transposed ? p.m : p.k));
  const dnnl_status_t status =
      dnnl_sgemm(p.a_transposed ? 'T' : 'N', p.b_transposed ? 'T' : 'N', p.m, p.n, p.k, 1.0F,
                 static_cast<const float*>(p.a), p.a_row, static_cast<const float*>(p.b),
                 p.b_transposed ? p.k : p.n, p.write == Write::accumulate ? 1.0F : 0.0F,
                 static_cast<float*>(p.c), p.c_row);
  if (status != dnnl_success) {
    throw SystemError(
        ExitCode::internal,
        format_message("dnnl_sgemm failed with status {} for a product of {} x {} x {}",
                       static_cast<int>(status), p.m, p.n, p.k));
  }
  if (p.bias_N != nullptr) {
    add_bias(static_cast<float*>(p.c), p.c_row, static_cast<const float*>(p.bias_N), p.m, p.n);
  }
}

bool has_native_bf16() {
  static const bool result = [] {
    const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
    return isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx;
  }();
  return result;
}

}  // namespace fourfold::kernels
