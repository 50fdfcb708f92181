// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/exchange/collective_benchmark.hpp>

#include <optional>

namespace fourfold::exchange {

/// How long to measure.
struct Pace {
  int warmup = 2;       ///< calls before
  int iterations = 0;   ///< calls per round; 0: as many as the time allows
  double budget_s = 1;  ///< for all rounds of a size together, about
};

struct Timing {
  double call_s = 0;
  std::optional<double> library_call_s;
};

/// Times of one call: of the slowest rank of `world`, the mean of a round's calls, the median of
/// five rounds. Ours and the library's rounds take turns, so that whatever else the machine does
/// hits both. Collective over `world`, which holds the benchmark's line.
/// @param library  nullptr: not measured
Timing measure(CollectiveBenchmark& collective_benchmark, comm::LibraryCollectives* library,
               comm::Communicator& world, const Pace& pace);

}  // namespace fourfold::exchange
