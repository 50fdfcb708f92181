// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"
#include "records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace fourfold::doctor {
namespace {

struct Figure {
  double RankSpeed::*value;
  const char* unit;
  const char* reason;  ///< for a rank that has its cores and is slow all the same
};

constexpr Figure products{&RankSpeed::products_gflops, "GFLOP/s",
                          "its cores are slow: heat, a limit of power, another processor"};
constexpr Figure triad{&RankSpeed::triad_gb_s, "GB/s",
                       "its memory is slow: a module has failed, or ranks share a socket's"};

std::string reason_of(const RankSpeed& speed, double usual_cores, const Figure& figure) {
  return speed.cores_had < outlier_share * usual_cores
             ? fmt::format(
                   "it had {:.2f} cores to itself, others {:.2f}: something else runs there",
                   speed.cores_had, usual_cores)
             : std::string(figure.reason);
}

Check evaluate(std::string name, const Ranks& ranks, std::span<const RankSpeed> speeds,
               const Figure& figure, const std::string& of) {
  Check check(std::move(name));
  const std::vector<double> values = each(speeds, figure.value);
  const auto slowest = std::ranges::min_element(values) - values.begin();
  const double usual = median(values);
  check.say(fmt::format("{:.1f} {} per rank{}", usual, figure.unit, of));
  if (values.size() > 1) {
    check.say(fmt::format("{} (median); slowest {} with {:.1f}", check.summary(),
                          ranks.rank_text(ranks.facts[slowest]), values[slowest]));
  }
  const std::set<int> oversubscribed = ranks.oversubscribed();
  const bool all_are = oversubscribed.size() == speeds.size();
  const double usual_cores = median(each(speeds, &RankSpeed::cores_had));
  std::map<std::string, std::size_t> slowest_of_node;
  for (const std::size_t rank : slow_ones(values)) {
    const auto found = slowest_of_node.try_emplace(ranks.nodes[rank], rank).first;
    found->second = values[rank] < values[found->second] ? rank : found->second;
  }
  for (const auto& [node, rank] : slowest_of_node) {
    const RankFacts& facts = ranks.facts[rank];
    const std::string finding =
        fmt::format("{} has {:.1f} {}, the median {:.1f} ({})", ranks.rank_text(facts),
                    values[rank], figure.unit, usual, reason_of(speeds[rank], usual_cores, figure));
    if (!all_are && oversubscribed.contains(facts.rank)) {
      check.warn(finding + " that is its binding: see the row \"cores\"");
    } else if (ranks.are_uneven()) {
      check.warn(finding + " start as many ranks on each node to compare them fairly");
    } else {
      check.fail_nodes({node}, finding + " leave the node out, and have it looked at");
    }
  }
  return check;
}

}  // namespace

RankSpeed better_of(const RankSpeed& a, const RankSpeed& b) {
  return {.products_gflops = std::max(a.products_gflops, b.products_gflops),
          .triad_gb_s = std::max(a.triad_gb_s, b.triad_gb_s),
          .cores_had = std::max(a.cores_had, b.cores_had)};
}

bool has_slow_ones(std::span<const RankSpeed> speeds) {
  return !slow_ones(each(speeds, products.value)).empty() ||
         !slow_ones(each(speeds, triad.value)).empty();
}

Check products_check(const Ranks& ranks, std::span<const RankSpeed> speeds, DType dtype) {
  return evaluate("products", ranks, speeds, products,
                  fmt::format(" in {}", fourfold::name(dtype)));
}

Check bandwidth_check(const Ranks& ranks, std::span<const RankSpeed> speeds) {
  return evaluate("memory speed", ranks, speeds, triad, "");
}

}  // namespace fourfold::doctor
