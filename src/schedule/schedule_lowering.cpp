// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/schedule/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace fourfold::schedule {
namespace {

/// The slots of one rank while its compute actions pass by.
class SlotTable {
 public:
  explicit SlotTable(const Schedule& schedule)
      : micro_batches_(schedule.micro_batches),
        occupied_(schedule.chunks),
        slot_of_(static_cast<std::size_t>(schedule.chunks) * schedule.micro_batches, 0) {}

  /// The slot of an action; forward takes the lowest free one, the last part of backward frees it.
  int pass(const Action& action) {
    std::vector<bool>& occupied = occupied_[action.chunk];
    int& slot =
        slot_of_[static_cast<std::size_t>(action.chunk) * micro_batches_ + action.micro_batch];
    if (action.kind == ActionKind::forward) {
      const auto free = std::ranges::find(occupied, false);
      slot = static_cast<int>(free - occupied.begin());
      if (free == occupied.end()) {
        occupied.push_back(true);
      } else {
        *free = true;
      }
    } else if (action.kind != ActionKind::backward_input &&
               static_cast<std::size_t>(slot) < occupied.size()) {
      occupied[slot] = false;
    }
    return slot;
  }

 private:
  int micro_batches_;
  std::vector<std::vector<bool>> occupied_;  ///< [chunk][slot]
  std::vector<int> slot_of_;                 ///< [chunk][micro-batch]
};

/// The receive that an action waits for, if it waits for one.
std::optional<Action> receive_of(const Schedule& schedule, int rank, Action action) {
  if (action.kind == ActionKind::forward && schedule.previous_peer(rank, action.chunk)) {
    action.kind = ActionKind::receive_activation;
    return action;
  }
  const bool gradient =
      action.kind == ActionKind::backward || action.kind == ActionKind::backward_input;
  if (gradient && schedule.next_peer(rank, action.chunk)) {
    action.kind = ActionKind::receive_gradient;
    return action;
  }
  return std::nullopt;
}

/// The send that follows an action, if one does.
std::optional<Action> send_of(const Schedule& schedule, int rank, Action action) {
  if (action.kind == ActionKind::forward && schedule.next_peer(rank, action.chunk)) {
    action.kind = ActionKind::send_activation;
    return action;
  }
  const bool gradient =
      action.kind == ActionKind::backward || action.kind == ActionKind::backward_input;
  if (gradient && schedule.previous_peer(rank, action.chunk)) {
    action.kind = ActionKind::send_gradient;
    return action;
  }
  return std::nullopt;
}

/// Whether the receive of the action after `before` may be posted ahead of `before`: not when that
/// one frees the slot, or is the forward that takes it.
bool may_pass(const Action& receive, const Action& before) {
  return before.chunk != receive.chunk || before.slot != receive.slot;
}

std::vector<Action> lowered_rank(const Schedule& schedule, int rank) {
  std::vector<Action> compute = schedule.ranks[rank];
  SlotTable slots(schedule);
  for (Action& action : compute) {
    FOURFOLD_EXPECT(is_compute(action.kind));
    action.slot = slots.pass(action);
  }
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
