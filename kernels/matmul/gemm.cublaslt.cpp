// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Products through cuBLASLt: a plan for each kind.
#include "gemm_plan.cublaslt.hpp"
#include "matmul_algorithm.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/device.hpp>

#include <fmt/format.h>

#include <map>
#include <mutex>

namespace fourfold::kernels {
namespace {

/// Of the process. Plans stay where they are until forget_algorithms().
std::mutex plans_mutex;
std::map<GemmKind, GemmPlan> plans;

GemmPlan& plan_of(DType dtype, const Gemm& product, device::StreamRef stream) {
  const std::scoped_lock lock(plans_mutex);
  return plans.try_emplace(kind_of(dtype, product), dtype, product, stream).first->second;
}

}  // namespace

void multiply(DType dtype, const Gemm& product, device::StreamRef stream) {
  FOURFOLD_EXPECT(product.epilogue == Epilogue::none);
  FOURFOLD_EXPECT(product.c_dtype == dtype || product.c_dtype == DType::f32);
  FOURFOLD_EXPECT(product.bias_N == nullptr || product.write == Write::replace);
  plan_of(dtype, product, stream).run(product, nullptr, stream);
  finish_if_default(stream);
}

void multiply_with_epilogue(DType dtype, const Gemm& product, const EpilogueKernels& kernels,
                            device::StreamRef stream) {
  FOURFOLD_EXPECT(product.epilogue != Epilogue::none);
  plan_of(dtype, product, stream).run(product, &kernels, stream);
  finish_if_default(stream);
}

std::string matmul_library() {
  return fmt::format("{}, cuBLASLt {}", device::device_facts().name, cublaslt_version());
}

std::vector<std::string> ways_of(DType dtype, const Gemm& product) {
  return plan_of(dtype, product, {}).way_names();
}

void forget_algorithms() {
  const std::scoped_lock lock(plans_mutex);
  plans.clear();
}

}  // namespace fourfold::kernels
