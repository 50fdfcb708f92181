// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cublaslt_library.cublaslt.hpp"
#include "gemm.hpp"
#include "matmul_algorithm.hpp"

#include <cstddef>
#include <mutex>
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

  /// Whether the way is for good; until then calls measure.
  bool is_chosen() const;
  /// Waits for a measurement that began.
  void choose();
  std::vector<std::string> way_names() const;

 private:
  using Algorithm = std::optional<cublasLtMatmulAlgo_t>;  ///< none: apart
  struct Way {
    std::string name;
    Algorithm algorithm;
  };

  /// @param sums_M  of Epilogue::row_sums
  void describe(const Gemm& product, float* sums_M, cublasLtMatmulDescOpaque_t& made) const;
  void find_algorithms(const Gemm& product, bool all, device::StreamRef stream);
  std::vector<cublasLtMatmulAlgo_t> algorithms(const Gemm& product, device::StreamRef stream) const;
  /// Enqueues it one way; false when the library refuses it after all.
  bool enqueue(const Algorithm& algorithm, const Gemm& product, const EpilogueKernels* kernels,
               device::StreamRef stream) const;
  Algorithm choose(const Gemm& product, const EpilogueKernels* kernels, device::StreamRef stream);
  void measure(const Gemm& product, const EpilogueKernels* kernels, device::StreamRef stream);
  void begin_measuring(const Gemm& product, const EpilogueKernels* kernels,
                       device::StreamRef stream);
  void conclude();

  DType dtype_;
  std::string name_;
  MatrixLayout b_;
  MatrixLayout a_;
  MatrixLayout c_;
  std::vector<Way> ways_;  // from here on guarded by the mutex
  std::size_t chosen_ = 0;
  bool is_chosen_ = true;
  std::optional<TimingRounds> rounds_;
  std::vector<bool> refused_;
  /// Held by no call while it enqueues, which may wait for the device, but those that measure.
  mutable std::mutex mutex_;
};

}  // namespace fourfold::kernels
