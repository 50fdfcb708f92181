// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/clock.hpp>
#include <fourfold/exchange/measure.hpp>

#include <algorithm>
#include <array>

namespace fourfold::exchange {
namespace {

constexpr int rounds = 5;
/// More do not make the mean better, and a wrong guess of the time costs less.
constexpr double most_iterations = 20'000;

/// Seconds per call of the slowest rank, over `iterations` calls in a row.
template <class Call>
double timed(const Call& call, int iterations, comm::Communicator& world) {
  world.barrier();
  const double start_s = steady_time_s();
  for (int i = 0; i < iterations; ++i) {
    call();
  }
  const double call_s = (steady_time_s() - start_s) / iterations;
  return comm::all_reduce_scalar(world, call_s, comm::ReduceOp::max);
}

/// One of the two that are compared.
template <class Call>
class Contender {
 public:
  /// @param share_s  of the budget, for each round
  Contender(const Call& call, const Pace& pace, double share_s, comm::Communicator& world)
      : call_(call), world_(&world), iterations_(pace.iterations) {
    for (int i = 0; i < pace.warmup; ++i) {
      call();
    }
    if (iterations_ == 0) {
      // The same on all ranks, as the guess is.
      const double guess_s = timed(call, 1, world);
      iterations_ = static_cast<int>(std::clamp(share_s / guess_s, 1.0, most_iterations));
    }
  }
  void run_round(int round) { times_s_[round] = timed(call_, iterations_, *world_); }
  double median_s() {
    std::ranges::sort(times_s_);
    return times_s_[rounds / 2];
  }

 private:
  const Call& call_;
  comm::Communicator* world_;
  int iterations_;
  std::array<double, rounds> times_s_{};
};

}  // namespace

Timing measure(CollectiveBenchmark& collective_benchmark, comm::LibraryCollectives* library,
               comm::Communicator& world, const Pace& pace) {
  const auto our_call = [&] { collective_benchmark.run(); };
  const auto their_call = [&] { collective_benchmark.run_library(*library); };
  const double share_s = pace.budget_s / (rounds * (library == nullptr ? 1 : 2));
  Contender ours(our_call, pace, share_s, world);
  if (library == nullptr) {
    for (int round = 0; round < rounds; ++round) {
      ours.run_round(round);
    }
    return {.call_s = ours.median_s(), .library_call_s = {}};
  }
  Contender theirs(their_call, pace, share_s, world);
  for (int round = 0; round < rounds; ++round) {
    ours.run_round(round);
    theirs.run_round(round);
  }
  return {.call_s = ours.median_s(), .library_call_s = theirs.median_s()};
}

}  // namespace fourfold::exchange
