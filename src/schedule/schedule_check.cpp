// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "schedule_places.hpp"

#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/schedule_dependencies.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace fourfold::schedule {
namespace {

Defect check_memory(const Schedule& schedule, const std::vector<std::vector<int>>& slot_limits) {
  for (int rank = 0; rank < std::ssize(slot_limits); ++rank) {
    const std::vector<Action>& actions = schedule.ranks[rank];
    for (int chunk = 0; chunk < std::ssize(slot_limits[rank]); ++chunk) {
      const int limit = slot_limits[rank][chunk];
      for (int index = 0; index < std::ssize(actions); ++index) {
        const Action& action = actions[index];
        if (action.chunk == chunk && action.slot >= limit) {
          return fmt::format("{} uses slot {}, but chunk {} has memory for {} micro-batches",
                             Places{}.action(schedule, rank, index), action.slot, chunk, limit);
        }
      }
    }
  }
  return std::nullopt;
}

/// Why an action cannot begin: the end of a message that another rank has not posted, or itself.
/// @param reached  [rank] actions that were done
ActionPlace waited_for(const Dependencies& needs, const std::vector<int>& reached,
                       const ActionPlace& waiting) {
  for (const int number : needs.nodes[waiting.rank][waiting.index].waits) {
    if (number < 0) {
      continue;
    }
    const Transfer& transfer = needs.transfers[number];
    for (const ActionPlace& end : {transfer.send, transfer.receive}) {
      if (reached[end.rank] <= end.index) {
        return end;
      }
    }
  }
  return waiting;
}

}  // namespace

Defect check_ranges(const Schedule& schedule) {
  if (schedule.stages < 1 || schedule.micro_batches < 1 || schedule.chunks < 1 ||
      std::ssize(schedule.ranks) != schedule.stages) {
    return fmt::format("{} lists for {} stages, {} micro-batches and {} chunks",
                       schedule.ranks.size(), schedule.stages, schedule.micro_batches,
                       schedule.chunks);
  }
  if (schedule.placement == Placement::vee && schedule.chunks != 2) {
    return fmt::format("a vee has 2 chunks, not {}", schedule.chunks);
  }
  for (int rank = 0; rank < schedule.stages; ++rank) {
    for (int index = 0; index < std::ssize(schedule.ranks[rank]); ++index) {
      const Action& action = schedule.ranks[rank][index];
      const bool fits = action.kind <= ActionKind::receive_gradient && action.micro_batch >= 0 &&
                        action.micro_batch < schedule.micro_batches && action.chunk >= 0 &&
                        action.chunk < schedule.chunks && action.slot >= 0 &&
                        action.slot < std::ssize(schedule.ranks[rank]);
      if (!fits) {
        return fmt::format(
            "rank {}, action {}: micro-batch {}, chunk {}, slot {} are not all below {}, {}, {}",
            rank, index, action.micro_batch, action.chunk, action.slot, schedule.micro_batches,
            schedule.chunks, schedule.ranks[rank].size());
      }
    }
  }
  return std::nullopt;
}

Defect check_channels(const Schedule& schedule, const Places& places) {
  for (const Channel& channel : channels(schedule)) {
    const std::size_t both = std::min(channel.sends.size(), channel.receives.size());
    for (std::size_t i = 0; i < both; ++i) {
      const auto [from, sent] = channel.sends[i];
      const auto [to, got] = channel.receives[i];
      const Action& send = schedule.ranks[from][sent];
      const Action& receive = schedule.ranks[to][got];
      const auto wanted = channel.kind == ActionKind::send_activation
                              ? schedule.next(from, send.chunk)
                              : schedule.previous(from, send.chunk);
      if (send.micro_batch != receive.micro_batch || wanted != ChunkPlace{to, receive.chunk}) {
        return fmt::format(
            "{} is met by {}: sends and receives cross (both ends of a channel must "
            "keep the same order); give one rank the order of the other",
            places.action(schedule, from, sent), places.action(schedule, to, got));
      }
    }
    if (both < channel.sends.size()) {
      const auto [rank, index] = channel.sends[both];
      return fmt::format("{} goes to rank {}, which does not receive it",
                         places.action(schedule, rank, index), channel.to);
    }
    if (both < channel.receives.size()) {
      const auto [rank, index] = channel.receives[both];
      return fmt::format("{} waits for rank {}, which does not send it",
                         places.action(schedule, rank, index), channel.from);
    }
  }
  return std::nullopt;
}

Defect check_progress(const Schedule& schedule, const Places& places) {
  const Dependencies needs = dependencies(schedule);
  std::vector<int> reached(schedule.ranks.size());
  for (const ActionPlace& done : execution_order(schedule, needs)) {
    ++reached[done.rank];
  }
  int rank = 0;
  while (rank < schedule.stages && reached[rank] == std::ssize(schedule.ranks[rank])) {
    ++rank;
  }
  if (rank == schedule.stages) {
    return std::nullopt;
  }
  std::string text = "deadlock: ";
  std::vector<bool> told(schedule.ranks.size());
  while (!told[rank]) {
    told[rank] = true;
    const ActionPlace waiting{rank, reached[rank]};
    const ActionPlace needed = waited_for(needs, reached, waiting);
    text += (text.back() == ' ' ? "" : "; ") + places.action(schedule, waiting.rank, waiting.index);
    if (needed != waiting) {
      text += " waits for " + places.action(schedule, needed.rank, needed.index);
    }
    rank = needed.rank;
  }
  return text + " (no rank can go on); let one of them do earlier what the other waits for";
}

Defect check_all(const Schedule& schedule, const Places& places) {
  if (auto defect = check_ranges(schedule)) {
    return defect;
  }
  for (const auto check : {check_compute, check_buffers, check_channels, check_progress}) {
    if (auto defect = check(schedule, places)) {
      return defect;
    }
  }
  return std::nullopt;
}

std::optional<std::string> check_schedule(const Schedule& schedule,
                                          const std::vector<std::vector<int>>& slot_limits) {
  auto defect = check_all(schedule, {});
  return defect ? defect : check_memory(schedule, slot_limits);
}

}  // namespace fourfold::schedule
