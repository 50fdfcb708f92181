// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "rank_checks.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/matmul.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <set>

namespace fourfold::doctor {
namespace {

constexpr int side = 512;  ///< of the matrices: 3 MiB of f32, and 0.27 GFLOP a product
/// Of an array of the triad; the three are larger than a core's share of any cache.
constexpr int triad_elements = 8 << 20;

double cpu_s() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  const auto exact = std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  return std::chrono::duration<double>(exact).count();
}

/// Calls per second in a window that begins on all ranks together.
template <class Call>
double rate_of(const Call& call, double window_s, comm::Communicator& world) {
  call();  // what is set up or brought into memory at the first
  world.barrier();
  const double start_s = steady_time_s();
  double end_s = start_s;
  int calls = 0;
  while (end_s - start_s < window_s) {
    call();
    ++calls;
    end_s = steady_time_s();
  }
  return calls / (end_s - start_s);
}

/// @param of      what the figure is of, for the summary
/// @param reason  for a rank that has its cores and is slow all the same
Check evaluate(std::string name, const Ranks& ranks, double RankFacts::*figure, const char* unit,
               const std::string& of, const char* reason) {
  Check check(std::move(name));
  const std::vector<double> values = each(ranks, figure);
  const auto slowest = std::ranges::min_element(values) - values.begin();
  const double usual = median(values);
  check.say(fmt::format("{:.1f} {} per rank{}", usual, unit, of));
  if (values.size() > 1) {
    check.say(fmt::format("{} (median); slowest {} with {:.1f}", check.summary(),
                          ranks[slowest].str(), values[slowest]));
  }
  const std::set<int> bound_together = oversubscribed(ranks);
  const bool all_are = bound_together.size() == ranks.size();
  const double usual_cores = median(each(ranks, &RankFacts::cores_had));
  std::map<std::string, std::size_t> slowest_of_node;
  for (const std::size_t rank : slow_ones(values)) {
    const auto found = slowest_of_node.try_emplace(ranks[rank].node, rank).first;
    found->second = values[rank] < values[found->second] ? rank : found->second;
  }
  for (const auto& [node, rank] : slowest_of_node) {
    const RankFacts& facts = ranks[rank];
    const std::string why =
        facts.cores_had < outlier_share * usual_cores
            ? fmt::format("it had {:.2f} cores to itself, others {:.2f}: something else runs there",
                          facts.cores_had, usual_cores)
            : std::string(reason);
    const std::string finding = fmt::format("{} has {:.1f} {}, the median {:.1f} ({})", facts.str(),
                                            values[rank], unit, usual, why);
    if (!all_are && bound_together.contains(facts.rank)) {
      check.warn(finding + " that is its binding: see the row \"cores\"");
    } else if (are_uneven(ranks)) {
      check.warn(finding + " start as many ranks on each node to compare them fairly");
    } else {
      check.fail_nodes({node}, finding + " leave the node out, and have it looked at");
    }
  }
  return check;
}

}  // namespace

void measure_speed(DType dtype, double window_s, comm::Communicator& world, RankFacts& own) {
  double products_per_s = 0;
  double cores_had = 0;
  {
    const device::Tensor x(dtype, {side, side});
    const device::Tensor w(dtype, {side, side});
    const device::Tensor y(dtype, {side, side});
    const double start_s = steady_time_s();
    const double start_cpu_s = cpu_s();
    products_per_s = rate_of([&] { kernels::linear(x, w, {}, y, {}); }, window_s, world);
    cores_had = (cpu_s() - start_cpu_s) / (steady_time_s() - start_s);
  }
  const device::Tensor a(DType::f32, {triad_elements});
  const device::Tensor b(DType::f32, {triad_elements});
  const device::Tensor c(DType::f32, {triad_elements});
  const double triads_per_s =
      rate_of([&] { kernels::add_scaled(b, 3, c, a, {}); }, window_s, world);
  keep_better(products_per_s * 2e-9 * (side * side * side),
              triads_per_s * 3e-9 * (triad_elements * 4), cores_had, own);
}

void keep_better(double products_gflops, double triad_gb_s, double cores_had, RankFacts& own) {
  own.products_gflops = std::max(own.products_gflops, products_gflops);
  own.triad_gb_s = std::max(own.triad_gb_s, triad_gb_s);
  own.cores_had = std::max(own.cores_had, cores_had);
}

bool has_slow_ones(const Ranks& ranks) {
  return !slow_ones(each(ranks, &RankFacts::products_gflops)).empty() ||
         !slow_ones(each(ranks, &RankFacts::triad_gb_s)).empty();
}

Check products_check(const Ranks& ranks, DType dtype) {
  return evaluate("products", ranks, &RankFacts::products_gflops, "GFLOP/s",
                  fmt::format(" in {}", fourfold::name(dtype)),
                  "its cores are slow: heat, a limit of power, another processor");
}

Check bandwidth_check(const Ranks& ranks) {
  return evaluate("memory speed", ranks, &RankFacts::triad_gb_s, "GB/s", "",
                  "its memory is slow: a module has failed, or ranks share a socket's");
}

}  // namespace fourfold::doctor
