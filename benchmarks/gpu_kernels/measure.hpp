// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>

#include <functional>
#include <string>
#include <vector>

namespace fourfold::benchmarks {

/// What bounds a kernel from above, measured in the same run: a copy within device memory, or a
/// large product.
enum class Roof : unsigned char { copy, product };

/// One kernel at one shape.
struct KernelCase {
  std::string kernel;
  std::string shape;
  Roof roof = Roof::copy;
  /// Of one run. copy: bytes that have to be read and written; product: floating-point operations.
  double work = 0;
  /// Runs number 0, 1, ... take the sets of operands in turn, so that none finds its own in a
  /// cache.
  int sets = 1;
  std::function<void(int set, device::StreamRef stream)> run;
};
using CaseGroup = std::vector<KernelCase>;

struct Repetition {
  int groups = 20;         ///< whose median counts
  double group_s = 0.004;  ///< a group has so many runs that it takes at least this long
};

struct Measurement {
  double median_s = 0;  ///< of one run
  double rate = 0;      ///< work per second
};

/// Runs a case in groups between two events each, all enqueued before the first is looked at, so
/// that the device never waits for the host: launches cost only what they cost in a step.
Measurement measure(const KernelCase& one, const Repetition& repetition, device::StreamRef stream);

}  // namespace fourfold::benchmarks
