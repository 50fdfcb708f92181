// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Products through cuBLASLt. It counts in columns: a row-major c_MN is its c_NM, so b comes first.
#include "product.hpp"
#include "scratch.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>

#include <cublasLt.h>
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <source_location>
#include <tuple>
#include <type_traits>

namespace fourfold::kernels {
namespace {

/// What Hopper's products want to have at most.
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

void check_cublas(cublasStatus_t status, const char* call,
                  std::source_location where = std::source_location::current()) {
  if (status == CUBLAS_STATUS_SUCCESS) {
    return;
  }
  const bool is_memory = status == CUBLAS_STATUS_ALLOC_FAILED;
  const bool is_node = status == CUBLAS_STATUS_EXECUTION_FAILED;
  throw SystemError(
      is_memory ? ExitCode::config
      : is_node ? ExitCode::node_fault
                : ExitCode::internal,
      fmt::format("cuBLASLt: {} failed ({}) {}", call, cublasLtGetStatusString(status),
                  is_memory ? "use a smaller train.micro_batch"
                  : is_node ? "leave this node out; its kernel log says more"
                            : "this is a bug: report it"),
      where);
}

template <class Native, cublasStatus_t (*destroy)(Native)>
struct Destroy {
  void operator()(Native native) const { static_cast<void>(destroy(native)); }
};
template <class Native, cublasStatus_t (*destroy)(Native)>
using Owner = std::unique_ptr<std::remove_pointer_t<Native>, Destroy<Native, destroy>>;
using Layout = Owner<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Description = Owner<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Preference = Owner<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

cublasLtHandle_t handle() {
  static const cublasLtHandle_t the_handle = [] {
    cublasLtHandle_t made = nullptr;
    check_cublas(cublasLtCreate(&made), "cublasLtCreate");
    return made;
  }();
  return the_handle;
}

cudaDataType_t type_of(DType dtype) {
  return dtype == DType::bf16 ? CUDA_R_16BF : dtype == DType::f16 ? CUDA_R_16F : CUDA_R_32F;
}

Layout layout(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t leading) {
  cublasLtMatrixLayout_t made = nullptr;
  check_cublas(cublasLtMatrixLayoutCreate(&made, type_of(dtype), static_cast<std::uint64_t>(rows),
                                          static_cast<std::uint64_t>(columns), leading),
               "cublasLtMatrixLayoutCreate");
  return Layout(made);
}

template <class Value>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, Value value) {
  check_cublas(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof(value)),
               "cublasLtMatmulDescSetAttribute");
}
template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         Value value) {
  check_cublas(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
               "cublasLtMatmulPreferenceSetAttribute");
}

/// Bytes that an address is a multiple of, as far as it matters.
std::uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  std::uint32_t bytes = 256;
  while (address % bytes != 0) {
    bytes /= 2;
  }
  return bytes;
}

Description describe(const Product& p) {
  cublasLtMatmulDesc_t made = nullptr;
  check_cublas(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "cublasLtMatmulDescCreate");
  Description description(made);
  set(made, CUBLASLT_MATMUL_DESC_TRANSA, p.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(made, CUBLASLT_MATMUL_DESC_TRANSB, p.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (p.bias_N != nullptr) {
    set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  }
  return description;
}

/// All that a product's way depends on.
using Key =
    std::tuple<DType, DType, std::int64_t, std::int64_t, std::int64_t, bool, bool, std::int64_t,
               std::int64_t, Write, bool, std::uint32_t, std::uint32_t, std::uint32_t>;
Key key_of(DType dtype, const Product& p) {
  return {dtype,
          p.c_dtype,
          p.m,
          p.n,
          p.k,
          p.a_transposed,
          p.b_transposed,
          p.a_row,
          p.c_row,
          p.write,
          p.bias_N != nullptr,
          alignment_of(p.a),
          alignment_of(p.b),
          alignment_of(p.c)};
}

/// How a product is made: found once, used by every call of its kind.
class Plan {
 public:
  Plan(DType dtype, const Product& p)
      : description_(describe(p)),
        b_(p.b_transposed ? layout(dtype, p.k, p.n, p.k) : layout(dtype, p.n, p.k, p.n)),
        a_(p.a_transposed ? layout(dtype, p.m, p.k, p.a_row) : layout(dtype, p.k, p.m, p.a_row)),
        c_(layout(p.c_dtype, p.n, p.m, p.c_row)) {
    if (p.bias_N != nullptr) {
      set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(dtype));
    }
    choose(p);
  }

  void run(const Product& p, device::StreamRef stream) {
    const float one = 1;
    const float so_far = p.write == Write::accumulate ? 1 : 0;
    void* const workspace = scratch(workspace_bytes, stream);
    const std::scoped_lock lock(mutex_);  // the bias is part of the description
    if (p.bias_N != nullptr) {
      set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias_N);
    }
    check_cublas(cublasLtMatmul(handle(), description_.get(), &one, p.b, b_.get(), p.a, a_.get(),
                                &so_far, p.c, c_.get(), p.c, c_.get(), &algorithm_, workspace,
                                workspace_bytes, static_cast<cudaStream_t>(stream.native())),
                 "cublasLtMatmul");
  }

 private:
  /// Of those that give the same bits every time: split sums are added in a fixed order.
  void choose(const Product& p) {
    cublasLtMatmulPreference_t made = nullptr;
    check_cublas(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
    const Preference preference(made);
    set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
    set(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p.b));
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p.a));
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p.c));
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p.c));
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    check_cublas(cublasLtMatmulAlgoGetHeuristic(handle(), description_.get(), b_.get(), a_.get(),
                                                c_.get(), c_.get(), made, 1, &found, &count),
                 "cublasLtMatmulAlgoGetHeuristic");
    if (count == 0) {
      throw SystemError(ExitCode::internal,
                        fmt::format("cuBLASLt knows no way for a product of {} x {} x {} (this is "
                                    "a bug) report it",
                                    p.m, p.n, p.k));
    }
    algorithm_ = found.algo;
  }

  Description description_;
  Layout b_;
  Layout a_;
  Layout c_;
  cublasLtMatmulAlgo_t algorithm_{};
  std::mutex mutex_;
};

Plan& plan_of(DType dtype, const Product& product) {
  static std::mutex mutex;
  static std::map<Key, std::unique_ptr<Plan>> plans;
  const std::scoped_lock lock(mutex);
  std::unique_ptr<Plan>& plan = plans[key_of(dtype, product)];
  if (!plan) {
    plan = std::make_unique<Plan>(dtype, product);
  }
  return *plan;
}

}  // namespace

void multiply(DType dtype, const Product& product, device::StreamRef stream) {
  FOURFOLD_EXPECT(product.c_dtype == dtype || product.c_dtype == DType::f32);
  FOURFOLD_EXPECT(product.bias_N == nullptr || product.write == Write::replace);
  plan_of(dtype, product).run(product, stream);
  if (stream == device::StreamRef{}) {
    stream.synchronize();
  }
}

}  // namespace fourfold::kernels
