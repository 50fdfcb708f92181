// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/schedule/schedule_ahead.hpp>
#include <fourfold/schedule/schedule_dependencies.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace fourfold::schedule {
namespace {

bool moves_activation(ActionKind kind) noexcept {
  return kind == ActionKind::send_activation || kind == ActionKind::receive_activation;
}

/// The forward passes in front of all backward passes of a rank, less what has no counterpart.
class ForwardSet {
 public:
  explicit ForwardSet(const Schedule& schedule)
      : schedule_(schedule), dependencies_(dependencies(schedule)), channels_(channels(schedule)) {
    for (const std::vector<Action>& actions : schedule.ranks) {
      std::vector<bool>& rank = in_.emplace_back(actions.size(), false);
      for (std::size_t i = 0; i < actions.size(); ++i) {
        const ActionKind kind = actions[i].kind;
        if (is_compute(kind) && kind != ActionKind::forward) {
          break;
        }
        rank[i] = kind == ActionKind::forward || moves_activation(kind);
      }
    }
    while (drop_messages() || drop_actions()) {
    }
  }

  bool has(int rank, std::size_t index) const { return in_[rank][index]; }

 private:
  /// Chunk and micro-batch of the forward passes of a rank so far.
  using Made = std::set<std::pair<int, int>>;

  bool has(const ActionPlace& place) const { return in_[place.rank][place.index]; }

  bool drop(const ActionPlace& place) {
    const bool was_in = has(place);
    in_[place.rank][place.index] = false;
    return was_in;
  }

  /// Of each channel a beginning stays, with both ends of its messages: they match in order.
  bool drop_messages() {
    bool dropped = false;
    for (const Channel& channel : channels_) {
      bool whole = true;
      for (std::size_t i = 0; i < channel.sends.size(); ++i) {
        whole = whole && has(channel.sends[i]) && has(channel.receives[i]);
        if (!whole) {
          dropped = drop(channel.sends[i]) || dropped;
          dropped = drop(channel.receives[i]) || dropped;
        }
      }
    }
    return dropped;
  }

  /// A forward pass needs its input, a send its forward pass.
  bool drop_actions() {
    bool dropped = false;
    for (int rank = 0; rank < schedule_.stages; ++rank) {
      Made made;
      const std::vector<Action>& actions = schedule_.ranks[rank];
      for (std::size_t i = 0; i < actions.size(); ++i) {
        const ActionPlace place{rank, static_cast<int>(i)};
        if (has(place) && lacks_something(place, made)) {
          dropped = drop(place) || dropped;
        }
        if (has(place) && actions[i].kind == ActionKind::forward) {
          made.emplace(actions[i].chunk, actions[i].micro_batch);
        }
      }
    }
    return dropped;
  }

  bool lacks_something(const ActionPlace& place, const Made& made) const {
    const Action& action = schedule_.ranks[place.rank][place.index];
    const auto is_made = [&](int chunk) { return made.contains({chunk, action.micro_batch}); };
    if (action.kind == ActionKind::send_activation) {
      return !is_made(action.chunk);
    }
    if (action.kind != ActionKind::forward) {
      return false;
    }
    if (const auto here = schedule_.previous_here(place.rank, action.chunk)) {
      return !is_made(*here);
    }
    const int arrival = dependencies_.nodes[place.rank][place.index].waits[0];
    return arrival >= 0 && !has(dependencies_.transfers[arrival].receive);
  }

  const Schedule& schedule_;
  Dependencies dependencies_;
  std::vector<Channel> channels_;
  std::vector<std::vector<bool>> in_;  ///< [rank][index]
};

}  // namespace

Schedule forwards_first(Schedule schedule) {
  const ForwardSet set(schedule);
  std::vector<std::vector<Action>> ranks;
  std::vector<int> ahead;
  for (int rank = 0; rank < schedule.stages; ++rank) {
    const std::vector<Action>& before = schedule.ranks[rank];
    std::vector<Action>& actions = ranks.emplace_back();
    for (const bool first : {true, false}) {
      for (std::size_t i = 0; i < before.size(); ++i) {
        if (set.has(rank, i) == first) {
          actions.push_back(before[i]);
        }
      }
      if (first) {
        ahead.push_back(static_cast<int>(actions.size()));
      }
    }
  }
  schedule.ranks = std::move(ranks);
  schedule.ahead = std::move(ahead);
  return schedule;
}

}  // namespace fourfold::schedule
