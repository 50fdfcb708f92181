// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "planned_failure.hpp"

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace fourfold::emulated {

cudaError_t planned_failure(const char* call) {
  static std::atomic<int> calls = 0;
  const char* const plan_text = std::getenv("FOURFOLD_EMULATED_GPU_FAIL");
  if (plan_text == nullptr) {
    return cudaSuccess;
  }
  const std::string_view plan = plan_text;
  const std::size_t name_end = plan.find(':');
  if (name_end == plan.npos || plan.substr(0, name_end) != call) {
    return cudaSuccess;
  }
  char* after_number = nullptr;
  const long first = std::strtol(plan.data() + name_end + 1, &after_number, 10);
  const long error = *after_number == ':' ? std::strtol(after_number + 1, nullptr, 10) : 0;
  return ++calls >= first ? static_cast<cudaError_t>(error) : cudaSuccess;
}

}  // namespace fourfold::emulated
