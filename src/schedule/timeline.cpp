// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/schedule/timeline.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace fourfold::schedule {

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
  summary.ranks.assign(timeline.stages, RankTimes{never, -never, 0});
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

namespace {

double megabytes(const CollectiveFacts& collective) {
  return static_cast<double>(collective.bytes) / 1e6;
}

bool is_of_group(const CollectiveFacts& one, const CollectiveFacts& other) {
  return one.communicator == other.communicator && one.ranks == other.ranks;
}

/// What each rank recorded of a group, by its operations.
using TotalsOfRank = std::map<int, std::vector<CollectiveTotal>>;

void add(std::vector<CollectiveTotal>& totals, const TimelineSpan& span) {
  const CollectiveFacts& facts = *span.collective;
  auto found = std::ranges::find_if(totals, [&](const CollectiveTotal& total) {
    return total.facts.operation == facts.operation;
  });
  if (found == totals.end()) {
    found = totals.insert(totals.end(), {.facts = facts});
    found->facts.bytes = 0;
  }
  found->facts.bytes += facts.bytes;
  found->time_s += span.end_s - span.begin_s;
  ++found->calls;
}

std::int64_t bytes_of(const std::vector<CollectiveTotal>& totals) {
  return std::accumulate(
      totals.begin(), totals.end(), std::int64_t{0},
      [](std::int64_t sum, const CollectiveTotal& total) { return sum + total.facts.bytes; });
}

}  // namespace

std::vector<CollectiveTotal> total_collectives(const Timeline& timeline) {
  std::vector<std::pair<CollectiveFacts, TotalsOfRank>> groups;
  for (const TimelineSpan& span : timeline.spans) {
    if (!span.collective) {
      continue;
    }
    auto group = std::ranges::find_if(
        groups, [&](const auto& one) { return is_of_group(one.first, *span.collective); });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {*span.collective, {}});
    }
    add(group->second[span.rank], span);
  }
  std::vector<CollectiveTotal> all;
  for (const auto& [facts, ranks] : groups) {
    const auto busiest =
        std::ranges::max_element(ranks, {}, [](const auto& rank) { return bytes_of(rank.second); });
    all.insert(all.end(), busiest->second.begin(), busiest->second.end());
  }
  return all;
}

std::vector<std::string> collective_lines(const Timeline& timeline) {
  std::vector<std::string> lines;
  std::string group;
  for (const CollectiveTotal& total : total_collectives(timeline)) {
    const std::string its_group =
        fmt::format("{} of {} ranks", total.facts.communicator, total.facts.ranks);
    if (its_group != group) {
      group = its_group;
      lines.push_back(group + ": ");
    } else {
      lines.back() += "; ";
    }
    lines.back() +=
        fmt::format("{} {} times, {:.2f} MB, busbw {:.2f} GB/s", total.facts.operation, total.calls,
                    megabytes(total.facts), bus_gb_s(total.facts, total.time_s));
  }
  return lines;
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

std::string str(const CollectiveFacts& collective) {
  return fmt::format("{} {}, {:.2f} MB", collective.operation, collective.communicator,
                     megabytes(collective));
}

double bus_gb_s(const CollectiveFacts& collective, double time_s) {
  return time_s > 0 ? static_cast<double>(collective.bytes) / time_s / 1e9 * collective.bus_factor
                    : 0;
}

}  // namespace fourfold::schedule
