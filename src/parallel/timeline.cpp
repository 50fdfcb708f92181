// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/parallel/timeline.hpp>

#include <algorithm>
#include <limits>

namespace fourfold::parallel {

Timeline empty_timeline(const Schedule& schedule) {
  return {.name = schedule.name,
          .stages = schedule.stages,
          .chunks = schedule.chunks,
          .placement = schedule.placement,
          .events = {},
          .spans = {}};
}

double TimelineSummary::bubble_s() const noexcept {
  double busiest_s = 0;
  for (const RankTimes& rank : ranks) {
    busiest_s = std::max(busiest_s, rank.busy_s);
  }
  return makespan_s() - busiest_s;
}

double TimelineSummary::waiting_s() const noexcept {
  double longest_s = 0;
  for (const RankTimes& rank : ranks) {
    longest_s = std::max(longest_s, rank.waiting_s());
  }
  return longest_s;
}

TimelineSummary summarize(const Timeline& timeline) {
  constexpr double never = std::numeric_limits<double>::infinity();
  TimelineSummary summary{never, -never, {}};
  summary.ranks.assign(static_cast<std::size_t>(timeline.stages), RankTimes{never, -never, 0});
  for (const TimelineEvent& event : timeline.events) {
    if (is_compute(event.action.kind)) {
      RankTimes& rank = summary.ranks[event.rank];
      rank.begin_s = std::min(rank.begin_s, event.begin_s);
      rank.end_s = std::max(rank.end_s, event.end_s);
      rank.busy_s += event.end_s - event.begin_s;
    }
  }
  for (RankTimes& rank : summary.ranks) {
    summary.begin_s = std::min(summary.begin_s, rank.begin_s);
    summary.end_s = std::max(summary.end_s, rank.end_s);
    rank = rank.begin_s == never ? RankTimes{} : rank;
  }
  if (summary.begin_s == never) {
    summary.begin_s = summary.end_s = 0;
  }
  return summary;
}

void shift(Timeline& timeline, double by_s) {
  for (TimelineEvent& event : timeline.events) {
    event.begin_s += by_s;
    event.end_s += by_s;
  }
  for (TimelineSpan& span : timeline.spans) {
    span.begin_s += by_s;
    span.end_s += by_s;
  }
}

}  // namespace fourfold::parallel
