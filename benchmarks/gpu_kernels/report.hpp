// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure.hpp"

#include <string>
#include <vector>

namespace fourfold::benchmarks {

struct MeasuredKernel {
  std::string kernel;
  std::string shape;
  Roof roof = Roof::copy;
  double work = 0;
  Measurement measured;
  double share = 0;  ///< of the roof
};

struct KernelsReport {
  std::string device;
  Measurement copy;
  Measurement product;
  std::vector<MeasuredKernel> kernels;
};

/// One JSON object.
std::string to_json(const KernelsReport& report);

}  // namespace fourfold::benchmarks
