// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "call_result.hpp"

#include <utility>

namespace fourfold::emulated {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

cudaError_t note(cudaError_t result) {
  last_error = result == cudaSuccess ? last_error : result;
  return result;
}

cudaError_t take_last_error() {
  return std::exchange(last_error, cudaSuccess);
}

}  // namespace fourfold::emulated
