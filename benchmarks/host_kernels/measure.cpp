// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <time.h>

#include <algorithm>
#include <limits>

namespace fourfold::benchmarks {
namespace {

/// Processor time of this thread: time that others take the core away does not count.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Work>
double seconds_of(const Work& work) {
  const double start = thread_seconds();
  work();
  return thread_seconds() - start;
}

}  // namespace

Measurement measure(const KernelCase& one, double seconds) {
  constexpr double never = std::numeric_limits<double>::infinity();
  Measurement best{never, never, never};
  StreamCeiling stream(one.mix, one.elements);
  ExpCeiling exponentials;
  const double exp_runs =
      one.exps * static_cast<double>(one.elements) / (64.0 * ExpCeiling::elements);
  double spent = 0;
  for (int round = 0; round < 9 || spent < seconds; ++round) {
    const double kernel = seconds_of(one.run);
    const double copy = seconds_of([&] { stream.run(); });
    double exp_once = never;
    for (int i = 0; i < 20; ++i) {
      exp_once = std::min(exp_once, seconds_of([&] { exponentials.run(); }));
    }
    best.kernel_s = std::min(best.kernel_s, kernel);
    best.copy_s = std::min(best.copy_s, copy);
    best.exp_s = std::min(best.exp_s, exp_once * exp_runs);
    spent += kernel + copy;
  }
  return best;
}

}  // namespace fourfold::benchmarks
