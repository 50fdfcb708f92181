// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "cublaslt_library.cublaslt.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>

#include <cuda_check.hpp>
#include <fmt/format.h>

namespace fourfold::kernels {
namespace {

void warn_of_other_version() {
  const std::size_t major = cublasLtGetVersion() / 10000;
  if (major != CUBLAS_VER_MAJOR) {
    log::warning(
        fmt::format("cuBLASLt is {} here, and {}.{} where this was compiled: products may fail or "
                    "be slower; build against this machine's CUDA",
                    cublaslt_version(), CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR));
  }
}

/// One of an algorithm's settings; 0 where the library does not know it.
template <class Value>
std::int64_t setting(const cublasLtMatmulAlgo_t& algorithm,
                     cublasLtMatmulAlgoConfigAttributes_t attribute) {
  Value value{};
  std::size_t written = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value), &written);
  return status == CUBLAS_STATUS_SUCCESS ? static_cast<std::int64_t>(value) : 0;
}

}  // namespace

void check_cublas(cublasStatus_t status, const char* call, std::source_location where) {
  if (status == CUBLAS_STATUS_SUCCESS) {
    return;
  }
  const bool is_memory = status == CUBLAS_STATUS_ALLOC_FAILED;
  const bool is_node = status == CUBLAS_STATUS_EXECUTION_FAILED;
  throw SystemError(
      is_memory ? ExitCode::config
      : is_node ? ExitCode::node_fault
                : ExitCode::internal,
      fmt::format("cuBLASLt: {} failed ({}); {}", call, cublasLtGetStatusString(status),
                  is_memory ? device::out_of_memory_advice()
                  : is_node ? "leave this node out; its kernel log says more"
                            : "this is a bug: report it"),
      where);
}

cublasLtHandle_t cublaslt() {
  static const cublasLtHandle_t the_handle = [] {
    warn_of_other_version();
    cublasLtHandle_t made = nullptr;
    check_cublas(cublasLtCreate(&made), "cublasLtCreate");
    return made;
  }();
  return the_handle;
}

std::string cublaslt_version() {
  const std::size_t version = cublasLtGetVersion();
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

cudaDataType_t cuda_type_of(DType dtype) {
  return dtype == DType::bf16 ? CUDA_R_16BF : dtype == DType::f16 ? CUDA_R_16F : CUDA_R_32F;
}

MatrixLayout matrix_layout(DType dtype, std::int64_t rows, std::int64_t columns,
                           std::int64_t leading) {
  cublasLtMatrixLayout_t made = nullptr;
  check_cublas(
      cublasLtMatrixLayoutCreate(&made, cuda_type_of(dtype), static_cast<std::uint64_t>(rows),
                                 static_cast<std::uint64_t>(columns), leading),
      "cublasLtMatrixLayoutCreate");
  return MatrixLayout(made);
}

std::string algorithm_name(const cublasLtMatmulAlgo_t& algorithm) {
  return fmt::format(
      "{} tile {} stages {} split {} reduction {} swizzle {} custom {} inner {} cluster {}",
      setting<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID),
      setting<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID),
      setting<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID),
      setting<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
      setting<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME),
      setting<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING),
      setting<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION),
      setting<std::uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID),
      setting<std::uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID));
}

}  // namespace fourfold::kernels
