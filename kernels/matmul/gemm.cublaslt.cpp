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
#include <memory>
#include <mutex>

namespace fourfold::kernels {
namespace {

struct Plans {
  std::mutex mutex;
  std::map<GemmKind, std::shared_ptr<GemmPlan>> of;
};
Plans& plans() {
  static Plans the_plans;
  return the_plans;
}

std::shared_ptr<GemmPlan> plan_of(DType dtype, const Gemm& product, device::StreamRef stream) {
  const std::scoped_lock lock(plans().mutex);
  std::shared_ptr<GemmPlan>& plan = plans().of[kind_of(dtype, product)];
  if (!plan) {
    plan = std::make_shared<GemmPlan>(dtype, product, stream);
  }
  return plan;
}

}  // namespace

void multiply(DType dtype, const Gemm& product, device::StreamRef stream) {
  FOURFOLD_EXPECT(product.epilogue == Epilogue::none);
  FOURFOLD_EXPECT(product.c_dtype == dtype || product.c_dtype == DType::f32);
  FOURFOLD_EXPECT(product.bias_N == nullptr || product.write == Write::replace);
  plan_of(dtype, product, stream)->run(product, nullptr, stream);
  finish_if_default(stream);
}

/// The product alone is measured first: making both apart is one of the ways.
void multiply_with_epilogue(DType dtype, const Gemm& product, const EpilogueKernels& kernels,
                            device::StreamRef stream) {
  FOURFOLD_EXPECT(product.epilogue != Epilogue::none);
  const auto plan = plan_of(dtype, product, stream);
  if (!plan->is_chosen() && !plan_of(dtype, without_epilogue(product), stream)->is_chosen()) {
    kernels.apart(dtype, product, stream);
  } else {
    plan->run(product, &kernels, stream);
  }
  finish_if_default(stream);
}

std::string product_library() {
  return fmt::format("{}, cuBLASLt {}", device::device_facts().name, cublaslt_version());
}

std::vector<std::string> ways_of(DType dtype, const Gemm& product) {
  return plan_of(dtype, product, {})->way_names();
}

void forget_algorithms() {
  const std::scoped_lock lock(plans().mutex);
  plans().of.clear();
}

void finish_timing() {
  std::vector<std::shared_ptr<GemmPlan>> all;
  {
    const std::scoped_lock lock(plans().mutex);
    for (const auto& [kind, plan] : plans().of) {
      all.push_back(plan);
    }
  }
  for (const std::shared_ptr<GemmPlan>& plan : all) {
    plan->choose();
  }
}

}  // namespace fourfold::kernels
