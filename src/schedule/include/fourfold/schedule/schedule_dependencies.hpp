// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the actions of a schedule wait for, by the rules of schedule.hpp: derived once from the
/// lists, for the checker, the simulator and whoever runs them.
#pragma once

#include <fourfold/schedule/schedule.hpp>

#include <array>
#include <vector>

namespace fourfold::schedule {

/// An action of a schedule: ranks[rank][index].
struct ActionPlace {
  int rank = 0;
  int index = 0;
  friend bool operator==(const ActionPlace&, const ActionPlace&) = default;
};

/// Everything that one rank sends to another of one kind, in the order in which it is posted.
struct Channel {
  int from = 0;
  int to = 0;
  ActionKind kind = ActionKind::send_activation;  ///< or send_gradient
  std::vector<ActionPlace> sends;
  std::vector<ActionPlace> receives;
};

/// By (from, to, kind). Sends without a neighbour to go to, and receives alike, are left out: the
/// checker names them.
std::vector<Channel> channels(const Schedule& schedule);

/// One message: the n-th send of a channel and its n-th receive.
struct Transfer {
  ActionPlace send;
  ActionPlace receive;
  int before = -1;  ///< number of the transfer before it in its channel; -1: the first
};

struct Dependencies {
  struct Node {
    int transfer = -1;  ///< of a send or receive: its message
    /// Messages that are complete before this action begins (rules 3 and 4); -1: none.
    std::array<int, 2> waits = {-1, -1};
  };
  std::vector<Transfer> transfers;
  std::vector<std::vector<Node>> nodes;  ///< [rank][index]
};

/// @pre every channel has as many receives as sends; slots are in range, as lowered() makes them
Dependencies dependencies(const Schedule& schedule);

/// An order in which one action after the other can happen; fewer of a rank than it has: deadlock.
/// Linear in the number of actions.
std::vector<ActionPlace> execution_order(const Schedule& schedule,
                                         const Dependencies& dependencies);

}  // namespace fourfold::schedule
