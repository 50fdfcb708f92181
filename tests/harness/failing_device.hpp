// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

namespace fourfold::harness {

/// While it lives an emulated device fails as `plan` says, "CALL:N:ERROR" (emulated_gpu.hpp).
class FailingDevice {
 public:
  explicit FailingDevice(const char* plan) { ::setenv(name, plan, 1); }
  ~FailingDevice() { ::unsetenv(name); }
  FailingDevice(const FailingDevice&) = delete;
  FailingDevice& operator=(const FailingDevice&) = delete;

 private:
  static constexpr const char* name = "FOURFOLD_EMULATED_GPU_FAIL";
};

}  // namespace fourfold::harness
