// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/schedule/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace fourfold::schedule {
namespace {

/// Sets the slots of one rank's compute actions: forward takes the lowest free one, the last part
/// of backward frees it.
void assign_slots(const Schedule& schedule, std::vector<Action>& compute) {
  std::vector<std::vector<bool>> occupied(schedule.chunks);  // [chunk][slot]
  std::vector<std::vector<int>> slot_of(schedule.chunks, std::vector<int>(schedule.micro_batches));
  for (Action& action : compute) {
    FOURFOLD_EXPECT(is_compute(action.kind));
    std::vector<bool>& slots = occupied[action.chunk];
    int& slot = slot_of[action.chunk][action.micro_batch];
    if (action.kind == ActionKind::forward) {
      slot = 0;
      while (slot < std::ssize(slots) && slots[slot]) {
        ++slot;
      }
      slots.resize(std::max<std::size_t>(slots.size(), slot + 1));
      slots[slot] = true;
    } else if (action.kind != ActionKind::backward_input && slot < std::ssize(slots)) {
      slots[slot] = false;
    }
    action.slot = slot;
  }
}

/// The message of one of two kinds that an action waits for or makes, if there is one.
std::optional<Action> message_of(const Schedule& schedule, int rank, Action action,
                                 ActionKind of_forward, ActionKind of_backward) {
  if (action.kind == ActionKind::backward_weight) {
    return std::nullopt;
  }
  action.kind = action.kind == ActionKind::forward ? of_forward : of_backward;
  return schedule.message_peer(rank, action) ? std::optional(action) : std::nullopt;
}

std::optional<Action> receive_of(const Schedule& schedule, int rank, const Action& action) {
  return message_of(schedule, rank, action, ActionKind::receive_activation,
                    ActionKind::receive_gradient);
}

std::optional<Action> send_of(const Schedule& schedule, int rank, const Action& action) {
  return message_of(schedule, rank, action, ActionKind::send_activation, ActionKind::send_gradient);
}

/// Whether the receive of the action after `before` may be posted ahead of `before`: not when that
/// one frees the slot, or is the forward that takes it.
bool may_pass(const Action& receive, const Action& before) {
  return before.chunk != receive.chunk || before.slot != receive.slot;
}

std::vector<Action> lowered_rank(const Schedule& schedule, int rank) {
  std::vector<Action> compute = schedule.ranks[rank];
  assign_slots(schedule, compute);
  std::vector<Action> list;
  bool posted = false;  // the receive of the action at hand, ahead of time
  for (std::size_t i = 0; i < compute.size(); ++i) {
    const auto receive = receive_of(schedule, rank, compute[i]);
    if (receive && !posted) {
      list.push_back(*receive);
    }
    posted = false;
    if (i + 1 < compute.size()) {
      const auto ahead = receive_of(schedule, rank, compute[i + 1]);
      posted = ahead && may_pass(*ahead, compute[i]);
      if (posted) {
        list.push_back(*ahead);
      }
    }
    list.push_back(compute[i]);
    if (const auto send = send_of(schedule, rank, compute[i])) {
      list.push_back(*send);
    }
  }
  return list;
}

}  // namespace

Schedule lowered(Schedule compute) {
  FOURFOLD_EXPECT(std::ssize(compute.ranks) == compute.stages);
  std::vector<std::vector<Action>> ranks;
  for (int rank = 0; rank < compute.stages; ++rank) {
    ranks.push_back(lowered_rank(compute, rank));
  }
  compute.ranks = std::move(ranks);
  return compute;
}

}  // namespace fourfold::schedule
