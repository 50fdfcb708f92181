// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ceiling.hpp"

#include <fourfold/base/dtype.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fourfold::benchmarks {

/// One kernel at one shape and storage type.
struct KernelCase {
  std::string kernel;
  std::string dtype;
  std::string shape;
  std::int64_t elements = 0;  ///< of the mix below
  Mix mix;
  double exps = 0;  ///< exponentials that the formula needs per element; 0: none
  std::function<void()> run;
};

struct Measurement {
  double kernel_s = 0;
  double copy_s = 0;  ///< the same bytes streamed in the same mix
  double exp_s = 0;   ///< the exponentials alone
};

/// Runs the kernel and its ceilings in turn for at least `seconds` (and 9 rounds), so that all see
/// the same machine, and keeps the shortest time of each: what others take from the machine only
/// adds.
Measurement measure(const KernelCase& one, double seconds);

/// The cases of the table by group, for operands larger than any cache. A group's operands are
/// freed with its cases.
using CaseGroup = std::vector<KernelCase>;
CaseGroup norm_cases(DType dtype);
CaseGroup activation_cases(DType dtype);
CaseGroup dropout_cases(DType dtype);
CaseGroup embedding_cases(DType dtype);
CaseGroup cross_entropy_cases(DType dtype);
CaseGroup optimizer_cases(DType dtype);
CaseGroup cast_cases(DType dtype);

}  // namespace fourfold::benchmarks
