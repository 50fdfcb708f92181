// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cublaslt_library.cublaslt.hpp"
#include "gemm.hpp"
#include "matmul_algorithm.hpp"

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::kernels {

/// How one kind of product is made: found by its first call, used by all of them, from any thread
/// and on any stream. cuBLASLt counts in columns: a row-major c_MN is its c_NM, so b comes first.
class GemmPlan {
 public:
  /// Finds the ways; takes the known one, or the first. @param product  with its pointers, of whose
  /// alignments the library takes note @throws SystemError when there is none
  GemmPlan(DType dtype, const Gemm& product, device::StreamRef stream);

  /// Enqueues. @param kernels  of a product with an epilogue, else nullptr
  void run(const Gemm& product, const EpilogueKernels* kernels, device::StreamRef stream);

  std::vector<std::string> way_names() const;

 private:
  using Algorithm = std::optional<cublasLtMatmulAlgo_t>;  ///< none: apart

  static std::string name_of(const Algorithm& algorithm);
  /// @param sums_M  of Epilogue::row_sums
  void describe(const Gemm& product, float* sums_M, cublasLtMatmulDescOpaque_t& made) const;
  /// @param all  not only the default, and what is known with it
  void find_algorithms(const Gemm& product, bool all, device::StreamRef stream);
  std::vector<cublasLtMatmulAlgo_t> algorithms(const Gemm& product, device::StreamRef stream) const;
  /// Enqueues it one way; false when the library refuses it after all.
  bool enqueue(const Algorithm& algorithm, const Gemm& product, const EpilogueKernels* kernels,
               device::StreamRef stream) const;
  /// Makes it in all ways, and takes the fastest from here on.
  void measure(const Gemm& product, const EpilogueKernels* kernels, device::StreamRef stream);
  void take(std::size_t way);

  DType dtype_;
  std::string name_;
  MatrixLayout b_;
  MatrixLayout a_;
  MatrixLayout c_;
  std::vector<Algorithm> ways_;  ///< the default first; apart, of a product with an epilogue
  std::atomic<std::size_t> taken_ = 0;
  std::atomic<bool> is_to_be_measured_ = false;  ///< by the next call that can
};

}  // namespace fourfold::kernels
