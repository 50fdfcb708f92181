// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/parallel/measured_timeline.hpp>

#include <cstdint>
#include <numeric>
#include <vector>

namespace fourfold::parallel {

namespace {

/// Pairs of begin and end of all actions and spans of all ranks, rank after rank.
std::vector<double> gather_pairs(std::span<const std::int64_t> counts, const RankTimings& mine,
                                 comm::Communicator& pp) {
  std::vector<double> own(mine.actions_s.begin(), mine.actions_s.end());
  for (const TimelineSpan& span : mine.spans) {
    own.push_back(span.begin_s);
    own.push_back(span.end_s);
  }
  for (double& time_s : own) {
    time_s -= mine.clock_offset_s;
  }
  std::vector<double> all(
      static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0})));
  pp.all_gather(ConstTensorView(own.data(), DType::f64, {std::ssize(own)}),
                TensorView(all.data(), DType::f64, {std::ssize(all)}), counts, {})
      .wait({});
  return all;
}

}  // namespace

Timeline gather_timeline(const Schedule& schedule, const RankTimings& mine,
                         comm::Communicator& pp) {
  const auto rank = static_cast<std::size_t>(pp.rank());
  FOURFOLD_EXPECT(mine.actions_s.size() == 2 * schedule.ranks[rank].size());
  std::vector<std::int64_t> counts;
  for (const std::vector<Action>& actions : schedule.ranks) {
    counts.push_back(2 * (std::ssize(actions) + std::ssize(mine.spans)));
  }
  const std::vector<double> all = gather_pairs(counts, mine, pp);
  Timeline timeline = empty_timeline(schedule);
  std::size_t next = 0;
  const auto take = [&] { return all[next++]; };
  for (int from = 0; from < schedule.stages; ++from) {
    for (const Action& action : schedule.ranks[static_cast<std::size_t>(from)]) {
      const double begin_s = take();
      timeline.events.push_back({from, action, begin_s, take()});
    }
    for (const TimelineSpan& span : mine.spans) {
      const double begin_s = take();
      timeline.spans.push_back({from, span.name, begin_s, take()});
    }
  }
  return timeline;
}

}  // namespace fourfold::parallel
