// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// cuBLASLt's objects with owners, and its failures as errors.
#pragma once

#include <fourfold/base/dtype.hpp>

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>

namespace fourfold::kernels {

/// @throws SystemError when `status` is no success: config when memory is short, node_fault when
///   the device failed, else internal
void check_cublas(cublasStatus_t status, const char* call,
                  std::source_location where = std::source_location::current());

template <class Native, cublasStatus_t (*destroy)(Native)>
using CublasOwner = std::unique_ptr<std::remove_pointer_t<Native>,
                                    std::integral_constant<decltype(destroy), destroy>>;
using MatrixLayout = CublasOwner<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using MatmulPreference = CublasOwner<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

/// The process's, made by the first call, whose thread has the process's device. Warns once when
/// the library is not of the major version that this was compiled for.
cublasLtHandle_t cublaslt();
/// "13.0.2"
std::string cublaslt_version();

cudaDataType_t cuda_type_of(DType dtype);

/// Column-major, columns `leading` elements apart.
MatrixLayout matrix_layout(DType dtype, std::int64_t rows, std::int64_t columns,
                           std::int64_t leading);

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

/// An algorithm by all that can be set of it, which is how the library's users name them:
/// "66 tile 20 stages 36 split 1 reduction 0 swizzle 0 custom 3 inner 0 cluster 2".
std::string algorithm_name(const cublasLtMatmulAlgo_t& algorithm);

}  // namespace fourfold::kernels
