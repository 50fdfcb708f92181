// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/schedule/schedule.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::schedule {

/// A collective, or a message that arrives, as a timeline shows it.
struct CollectiveFacts {
  std::string operation;     ///< "all_reduce"
  std::string communicator;  ///< its name
  int ranks = 1;
  std::int64_t bytes = 0;  ///< of a rank's larger buffer
  double bus_factor = 1;   ///< times bytes: what its link carries whatever the algorithm
  friend bool operator==(const CollectiveFacts&, const CollectiveFacts&) = default;
};

/// "all_gather zero, 12.58 MB"
std::string str(const CollectiveFacts& collective);

/// What each rank's link carried, in GB/s, as `fourfold bench comm` and nccl-tests count it; 0 when
/// it took no time.
double bus_gb_s(const CollectiveFacts& collective, double time_s);

/// One action of a step, with its times in seconds since the step began (on any rank: one clock).
/// Of a send or receive: from when it is posted until the message is complete.
struct TimelineEvent {
  int rank = 0;  ///< on the pp axis
  Action action;
  double begin_s = 0;
  double end_s = 0;
  friend bool operator==(const TimelineEvent&, const TimelineEvent&) = default;
};

/// step: a part of the step around the pipeline, one after the other. communication: a collective,
/// beside whatever else goes on.
enum class SpanKind : std::uint8_t { step, communication };

/// Something else that a rank did meanwhile.
struct TimelineSpan {
  int rank = 0;
  std::string name;  ///< "load batch"
  double begin_s = 0;
  double end_s = 0;
  SpanKind kind = SpanKind::step;
  std::optional<CollectiveFacts> collective = {};  ///< of communication; its str() is the name then
};

/// When a step did, or would do, what: the same shape whether it was simulated or measured, so that
/// both can be drawn over each other (fourfold/plan).
struct Timeline {
  std::string name;  ///< "zb-v, planned"
  int stages = 1;
  int chunks = 1;
  Placement placement = Placement::loop;
  std::vector<TimelineEvent> events;     ///< in any order
  std::vector<TimelineSpan> spans = {};  ///< measured ones have some

  int virtual_stages() const noexcept { return stages * chunks; }
  int virtual_stage_of(const TimelineEvent& event) const noexcept {
    return schedule::virtual_stage_of(placement, stages, {event.rank, event.action.chunk});
  }
};

/// Of this schedule, without events yet.
Timeline empty_timeline(const Schedule& schedule);

/// How busy one rank was.
struct RankTimes {
  double begin_s = 0;  ///< of its first compute action
  double end_s = 0;    ///< of its last
  double busy_s = 0;   ///< compute actions together
  /// Without compute between its first and last action.
  double waiting_s() const noexcept { return end_s - begin_s - busy_s; }
};

struct TimelineSummary {
  double begin_s = 0;  ///< first compute action of any rank
  double end_s = 0;    ///< last
  std::vector<RankTimes> ranks;
  double makespan_s() const noexcept { return end_s - begin_s; }
  /// Time in which the rank computes nothing while the step goes on.
  double bubble_s(int rank) const noexcept { return makespan_s() - ranks[rank].busy_s; }
  /// Of the rank that computes most: what every schedule of the same work is compared by.
  double bubble_s() const noexcept;
  /// The worst rank's waiting_s(): the bubble that is left when ranks need not begin and end
  /// together.
  double waiting_s() const noexcept;
};

TimelineSummary summarize(const Timeline& timeline);

/// Collectives of one communicator and operation.
struct CollectiveTotal {
  CollectiveFacts facts;  ///< bytes of all together
  std::int64_t calls = 0;
  double time_s = 0;  ///< of each, added up
};

/// In the order in which the communicators, and the operations of each, come first. Those of other
/// numbers of ranks are apart. Of each communicator they are those of the rank that moved most
/// through it: stages of a pipeline have their own, and both ends of one record what it does.
std::vector<CollectiveTotal> total_collectives(const Timeline& timeline);

/// A line for each communicator: "dp of 8 ranks: all_reduce 12 times, 248.32 MB, busbw 310.45 GB/s;
/// ..."
std::vector<std::string> collective_lines(const Timeline& timeline);

/// Adds `by_s` to all times.
void shift(Timeline& timeline, double by_s);

}  // namespace fourfold::schedule
