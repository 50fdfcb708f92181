// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "gemm_plan.cublaslt.hpp"

#include "matmul_algorithm.hpp"
#include "runtime/scratch.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/kernels/library_memory.hpp>

#include <fmt/format.h>
#include <native_stream.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

namespace fourfold::kernels {
namespace {

/// What Hopper's products want to have at most.
constexpr std::size_t workspace_bytes = product_workspace_bytes;
constexpr int most_algorithms = 16;

/// Scratch of a product, with room after it for the sums that the library writes, those of
/// Epilogue::row_sums: asked for anew before each use, as what runs between may have let it grow.
void* workspace_for(const Gemm& product, device::StreamRef stream) {
  const bool sums = product.epilogue == Epilogue::row_sums;
  return scratch(workspace_bytes + (sums ? product.m * sizeof(float) : 0), stream);
}
float* sums_after(void* workspace) {
  return reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + workspace_bytes);
}

cublasLtEpilogue_t native(const Gemm& product) {
  const bool bias = product.bias_N != nullptr;
  switch (product.epilogue) {
    case Epilogue::none:
      break;
    case Epilogue::gelu:
      return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::gelu_backward:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::row_sums:  // a is the library's B
      return CUBLASLT_EPILOGUE_BGRADB;
  }
  return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

bool has_aux(const Gemm& product) {
  return product.epilogue == Epilogue::gelu || product.epilogue == Epilogue::gelu_backward;
}

/// Whether the library may be asked for a product as one operation. Not in f32, where arithmetic
/// binds it and runs are compared to the bit. The rule for aux is cublasLt.h's.
bool may_be_one(DType dtype, const Gemm& product) {
  if (product.epilogue == Epilogue::none) {
    return true;
  }
  const bool aux_fits = product.c_row % 8 == 0 && alignment_of(product.aux_MN) >= 16;
  return dtype != DType::f32 && (!has_aux(product) || aux_fits);
}

/// What is taken where nothing is measured. Before Hopper the library makes a kernel of its own of
/// gelu, and sums beside weight gradients have made them slower than both apart (llm.c pull request
/// 591; CUDALibrarySamples issue 90).
bool is_one_by_default(const Gemm& product) {
  static const bool is_hopper = device::device_facts().compute_capability >= 90;
  return product.epilogue == Epilogue::none || (has_aux(product) && is_hopper);
}

/// Split sums are added in a fixed order.
bool repeats_bits(const cublasLtMatmulAlgo_t& algorithm) {
  std::uint32_t scheme = 0;
  std::size_t written = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoConfigGetAttribute(
      &algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof(scheme), &written);
  return status != CUBLAS_STATUS_SUCCESS || scheme == CUBLASLT_REDUCTION_SCHEME_NONE ||
         scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

MatmulPreference preference_for(const Gemm& product) {
  cublasLtMatmulPreference_t made = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  MatmulPreference preference(made);
  set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
  set(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(product.b));
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(product.a));
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(product.c));
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(product.c));
  return preference;
}

}  // namespace

GemmPlan::GemmPlan(DType dtype, const Gemm& p, device::StreamRef stream)
    : dtype_(dtype),
      name_(kind_of(dtype, p).str()),
      b_(p.b_transposed ? matrix_layout(dtype, p.k, p.n, p.k)
                        : matrix_layout(dtype, p.n, p.k, p.n)),
      a_(p.a_transposed ? matrix_layout(dtype, p.m, p.k, p.a_row)
                        : matrix_layout(dtype, p.k, p.m, p.a_row)),
      c_(matrix_layout(p.c_dtype, p.n, p.m, p.c_row)) {
  workspace_for(p, stream);  // memory first: that makes the process's device the calling thread's
  const std::optional<std::string> known = known_algorithm(name_);
  const bool measures = measures_products();
  find_algorithms(p, measures || known, stream);
  const auto found = std::ranges::find(ways_, known.value_or(""), name_of);
  if (found != ways_.end()) {
    taken_ = found - ways_.begin();
  } else {
    is_to_be_measured_ = measures && ways_.size() > 1;
  }
}

/// Pointers are part of a description: each call has one of its own, which takes no memory.
void GemmPlan::describe(const Gemm& p, float* sums_M, cublasLtMatmulDescOpaque_t& made) const {
  check_cublas(cublasLtMatmulDescInit(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "cublasLtMatmulDescInit");
  set(&made, CUBLASLT_MATMUL_DESC_TRANSA, p.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(&made, CUBLASLT_MATMUL_DESC_TRANSB, p.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(&made, CUBLASLT_MATMUL_DESC_EPILOGUE, native(p));
  if (p.epilogue == Epilogue::row_sums) {
    set(&made, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
    set(&made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, sums_M);
  } else if (p.bias_N != nullptr) {
    set(&made, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, cuda_type_of(dtype_));
    set(&made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias_N);
  }
  if (has_aux(p)) {
    set(&made, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.c_row);
    set(&made, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.aux_MN);
  }
}

void GemmPlan::find_algorithms(const Gemm& p, bool all, device::StreamRef stream) {
  const bool default_is_one = is_one_by_default(p);
  if (may_be_one(dtype_, p) && (all || default_is_one)) {
    std::ranges::copy(algorithms(p, stream), std::back_inserter(ways_));
  }
  if (p.epilogue != Epilogue::none) {
    ways_.insert(default_is_one ? ways_.end() : ways_.begin(), Algorithm());
  } else if (ways_.empty()) {
    throw SystemError(
        ExitCode::internal,
        fmt::format("cuBLASLt knows no way for the product {} (this is a bug); report it", name_));
  }
}

std::vector<cublasLtMatmulAlgo_t> GemmPlan::algorithms(const Gemm& p,
                                                       device::StreamRef stream) const {
  cublasLtMatmulDescOpaque_t description{};
  describe(p, sums_after(workspace_for(p, stream)), description);
  std::array<cublasLtMatmulHeuristicResult_t, most_algorithms> found{};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      cublaslt(), &description, b_.get(), a_.get(), c_.get(), c_.get(), preference_for(p).get(),
      most_algorithms, found.data(), &count);
  std::vector<cublasLtMatmulAlgo_t> result;
  const bool no_way =
      status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
  if (no_way && p.epilogue != Epilogue::none) {
    return result;
  }
  check_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
  for (const auto& one : std::span(found).first(count)) {
    if (one.state == CUBLAS_STATUS_SUCCESS && one.workspaceSize <= workspace_bytes &&
        repeats_bits(one.algo)) {
      result.push_back(one.algo);
    }
  }
  return result;
}

bool GemmPlan::enqueue(const Algorithm& algorithm, const Gemm& p, const EpilogueKernels* kernels,
                       device::StreamRef stream) const {
  if (!algorithm) {
    kernels->apart(dtype_, p, stream);
    return true;
  }
  const float one = 1;
  const float so_far = p.write == Write::accumulate ? 1 : 0;
  void* const workspace = workspace_for(p, stream);
  cublasLtMatmulDescOpaque_t description{};
  describe(p, sums_after(workspace), description);
  const cublasStatus_t status = cublasLtMatmul(
      cublaslt(), &description, &one, p.b, b_.get(), p.a, a_.get(), &so_far, p.c, c_.get(), p.c,
      c_.get(), &*algorithm, workspace, workspace_bytes, native(stream));
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) {
    return false;
  }
  check_cublas(status, "cublasLtMatmul");
  if (p.epilogue == Epilogue::row_sums) {
    kernels->add(sums_after(workspace), p.sums_M, p.m, stream);
  }
  return true;
}

void GemmPlan::run(const Gemm& product, const EpilogueKernels* kernels, device::StreamRef stream) {
  if (is_to_be_measured_ && !is_captured(stream) && is_to_be_measured_.exchange(false)) {
    measure(product, kernels, stream);
  }
  if (enqueue(ways_[taken_], product, kernels, stream)) {
    return;
  }
  if (kernels == nullptr) {
    check_cublas(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmul");
  }
  // It was said to be there, and is not: in every run.
  take(std::ranges::find(ways_, apart_way, name_of) - ways_.begin());
  kernels->apart(dtype_, product, stream);
}

/// A product that adds to what is there adds to other memory meanwhile, aligned as its own.
void GemmPlan::measure(const Gemm& product, const EpilogueKernels* kernels,
                       device::StreamRef stream) {
  Gemm timed = product;
  device::StreamBuffer spare_c;
  device::StreamBuffer spare_sums;
  if (product.write == Write::accumulate) {
    const std::size_t bytes = product.m * product.c_row * size_in_bytes(product.c_dtype) + 256;
    if (2 * bytes > device::owner_of(device::MemoryKind::device).free_bytes) {
      return;
    }
    spare_c = device::StreamBuffer(bytes, stream);
    device::zero(spare_c.data(), spare_c.bytes(), stream);
    timed.c = static_cast<std::byte*>(spare_c.data()) + alignment_of(product.c) % 256;
    if (product.sums_M != nullptr) {
      spare_sums = device::StreamBuffer(product.m * sizeof(float), stream);
      device::zero(spare_sums.data(), spare_sums.bytes(), stream);
      timed.sums_M = static_cast<float*>(spare_sums.data());
    }
  }
  const AlgorithmTimes times =
      fastest_algorithm(time_ways(ways_.size(), stream, [&](std::size_t way) {
        return enqueue(ways_[way], timed, kernels, stream);
      }));
  spare_c.give_back(stream);
  spare_sums.give_back(stream);
  take(times.best);
  note_choice({.product = name_,
               .way = name_of(ways_[times.best]),
               .us = times.median_us[times.best],
               .default_us = times.median_us.front()});
}

void GemmPlan::take(std::size_t way) {
  taken_ = way;
  outdate_recorded_work();
}

std::string GemmPlan::name_of(const Algorithm& algorithm) {
  return algorithm ? algorithm_name(*algorithm) : apart_way;
}

std::vector<std::string> GemmPlan::way_names() const {
  std::vector<std::string> names;
  std::ranges::transform(ways_, std::back_inserter(names), name_of);
  return names;
}

}  // namespace fourfold::kernels
