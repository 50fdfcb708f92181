// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Schedules whose backward pass is one action.
#include "schedule_shapes.hpp"

#include <fourfold/base/box.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fourfold::schedule {
namespace {

/// Micro-batches go through the chunks in groups: as many groups as whole ones of one per stage
/// fit, all as long as each other or one longer. A group shorter than the stages would make the
/// first rank wait for its own earlier chunk, and can even deadlock.
std::int64_t group_count(const Schedule& schedule) {
  return std::max(schedule.micro_batches / schedule.stages, 1);
}

/// Forward passes of a step: in each group chunk after chunk. The same order on every rank.
std::vector<Action> grouped_forwards(const Schedule& schedule) {
  std::vector<Action> order;
  for (std::int64_t group = 0; group < group_count(schedule); ++group) {
    const Range range = even_part(schedule.micro_batches, group_count(schedule), group);
    for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
      for (std::int64_t micro_batch = range.begin; micro_batch < range.end(); ++micro_batch) {
        order.push_back({ActionKind::forward, static_cast<int>(micro_batch), chunk, 0});
      }
    }
  }
  return order;
}

}  // namespace

std::vector<Action> naive_actions(const Schedule& schedule, int /*rank*/) {
  RankWriter writer(schedule.micro_batches, 1);
  for (int i = 0; i < schedule.micro_batches; ++i) {
    writer.add(ActionKind::forward);
    writer.add(ActionKind::backward);
  }
  return writer.take();
}

std::vector<Action> gpipe_actions(const Schedule& schedule, int /*rank*/) {
  RankWriter writer(schedule.micro_batches, 1);
  writer.add(schedule.micro_batches, ActionKind::forward);
  writer.add(schedule.micro_batches, ActionKind::backward);
  return writer.take();
}

std::vector<Action> one_forward_one_backward_actions(const Schedule& schedule, int rank) {
  RankWriter writer(schedule.micro_batches, 1);
  writer.add(schedule.stages - 1 - rank, ActionKind::forward);
  while (writer.count(ActionKind::backward) < schedule.micro_batches) {
    writer.add(ActionKind::forward);
    writer.add(ActionKind::backward);
  }
  return writer.take();
}

std::vector<Action> interleaved_actions(const Schedule& schedule, int rank) {
  const std::vector<Action> forwards = grouped_forwards(schedule);
  // So many forward passes until the first gradient is back at this rank.
  const auto longest = even_part(schedule.micro_batches, group_count(schedule), 0).count;
  const std::size_t warm_up = std::min<std::int64_t>(
      std::ssize(forwards), 2 * (schedule.stages - 1 - rank) + (schedule.chunks - 1) * longest);
  std::vector<Action> actions(forwards.begin(), forwards.begin() + warm_up);
  for (std::size_t i = 0; i < forwards.size(); ++i) {
    if (warm_up + i < forwards.size()) {
      actions.push_back(forwards[warm_up + i]);
    }
    // Backward passes take the groups in the same order, the chunks from the last to the first.
    Action backward = forwards[i];
    backward.kind = ActionKind::backward;
    backward.chunk = schedule.chunks - 1 - backward.chunk;
    actions.push_back(backward);
  }
  return actions;
}

}  // namespace fourfold::schedule
