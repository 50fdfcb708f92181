// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/schedule/schedule_dependencies.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

namespace fourfold::schedule {
namespace {

/// Numbers of the transfers that use a slot's buffers; -1: none.
struct SlotMessages {
  int arriving_activation = -1;
  int leaving_activation = -1;
  int arriving_gradient = -1;
  int leaving_gradient = -1;
};

/// Finds what each action of one rank waits for, going through its list once.
void find_waits(const Schedule& schedule, int rank, std::vector<Dependencies::Node>& nodes) {
  std::vector<std::vector<SlotMessages>> slots;  // [chunk][slot]
  std::vector<std::vector<int>> slot_of;         // [chunk][micro-batch]; -1: not yet
  for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
    slots.emplace_back(schedule.slots(rank, chunk));
    slot_of.emplace_back(schedule.micro_batches, -1);
  }
  // The message that must have left the buffer that a backward writes: its own at the end of the
  // model, the earlier chunk's where that lies on this rank.
  const auto gradient_to_leave = [&](const Action& action) {
    if (!schedule.next(rank, action.chunk)) {
      return std::exchange(slots[action.chunk][action.slot].leaving_gradient, -1);
    }
    const auto earlier = schedule.previous_here(rank, action.chunk);
    const int slot = earlier ? slot_of[*earlier][action.micro_batch] : -1;
    return slot < 0 ? -1 : std::exchange(slots[*earlier][slot].leaving_gradient, -1);
  };
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    const Action& action = schedule.ranks[rank][index];
    Dependencies::Node& node = nodes[index];
    SlotMessages& slot = slots[action.chunk][action.slot];
    switch (action.kind) {
      case ActionKind::receive_activation:
        node.waits[0] = std::exchange(slot.leaving_activation, -1);
        slot.arriving_activation = node.transfer;
        break;
      case ActionKind::forward:
        node.waits = {std::exchange(slot.arriving_activation, -1),
                      std::exchange(slot.leaving_activation, -1)};
        slot_of[action.chunk][action.micro_batch] = action.slot;
        break;
      case ActionKind::send_activation:
        slot.leaving_activation = node.transfer;
        break;
      case ActionKind::receive_gradient:
        node.waits[0] = std::exchange(slot.leaving_gradient, -1);
        slot.arriving_gradient = node.transfer;
        break;
      case ActionKind::backward:
      case ActionKind::backward_input:
        node.waits = {std::exchange(slot.arriving_gradient, -1), gradient_to_leave(action)};
        break;
      case ActionKind::send_gradient:
        slot.leaving_gradient = node.transfer;
        break;
      case ActionKind::backward_weight:
        break;
    }
  }
}

}  // namespace

std::vector<Channel> channels(const Schedule& schedule) {
  std::map<std::tuple<int, int, ActionKind>, Channel> by_key;
  for (int rank = 0; rank < schedule.stages; ++rank) {
    for (int index = 0; index < std::ssize(schedule.ranks[rank]); ++index) {
      const Action& action = schedule.ranks[rank][index];
      const auto peer =
          is_compute(action.kind) ? std::nullopt : schedule.message_peer(rank, action);
      if (!peer) {
        continue;
      }
      const bool sends = is_send(action.kind);
      const bool activation = action.kind == ActionKind::send_activation ||
                              action.kind == ActionKind::receive_activation;
      const Channel key{sends ? rank : peer->rank,
                        sends ? peer->rank : rank,
                        activation ? ActionKind::send_activation : ActionKind::send_gradient,
                        {},
                        {}};
      Channel& channel = by_key.try_emplace({key.from, key.to, key.kind}, key).first->second;
      (sends ? channel.sends : channel.receives).push_back({rank, index});
    }
  }
  std::vector<Channel> list;
  for (auto& [key, channel] : by_key) {
    list.push_back(std::move(channel));
  }
  return list;
}

Dependencies dependencies(const Schedule& schedule) {
  Dependencies result;
  for (const std::vector<Action>& actions : schedule.ranks) {
    result.nodes.emplace_back(actions.size());
  }
  int number = 0;  // of the next transfer
  for (const Channel& channel : channels(schedule)) {
    FOURFOLD_EXPECT(channel.sends.size() == channel.receives.size());
    for (std::size_t i = 0; i < channel.sends.size(); ++i) {
      const ActionPlace send = channel.sends[i];
      const ActionPlace receive = channel.receives[i];
      result.transfers.push_back({send, receive, i == 0 ? -1 : number - 1});
      result.nodes[send.rank][send.index].transfer = number;
      result.nodes[receive.rank][receive.index].transfer = number;
      ++number;
    }
  }
  for (int rank = 0; rank < schedule.stages; ++rank) {
    find_waits(schedule, rank, result.nodes[rank]);
  }
  return result;
}

std::vector<ActionPlace> execution_order(const Schedule& schedule,
                                         const Dependencies& dependencies) {
  std::vector<ActionPlace> order;
  std::vector<int> reached(schedule.ranks.size());
  std::vector<int> posted(dependencies.transfers.size(), 0);  // ends of each message
  const auto complete = [&](int transfer) { return transfer < 0 || posted[transfer] == 2; };
  std::deque<int> awake;
  for (int rank = 0; rank < schedule.stages; ++rank) {
    awake.push_back(rank);
  }
  while (!awake.empty()) {
    const int rank = awake.front();
    awake.pop_front();
    int& index = reached[rank];
    while (index < std::ssize(schedule.ranks[rank])) {
      const Dependencies::Node& node = dependencies.nodes[rank][index];
      if (!std::ranges::all_of(node.waits, complete)) {
        break;
      }
      order.push_back({rank, index});
      ++index;
      if (node.transfer >= 0 && ++posted[node.transfer] == 2) {
        const Transfer& transfer = dependencies.transfers[node.transfer];
        const int other = transfer.send.rank == rank ? transfer.receive.rank : transfer.send.rank;
        awake.push_back(other);
      }
    }
  }
  return order;
}

}  // namespace fourfold::schedule
