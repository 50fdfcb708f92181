// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/schedule/schedule.hpp>

#include <map>
#include <vector>

namespace fourfold::schedule {

/// Writes one rank's compute actions. Every call takes the next micro-batch of its kind and chunk,
/// and does nothing when there is none left: so a pattern made for many micro-batches serves few.
class RankWriter {
 public:
  RankWriter(int micro_batches, int chunks) : micro_batches_(micro_batches), next_(chunks) {}

  void add(ActionKind kind, int chunk = 0) {
    int& next = next_[chunk][kind];
    if (next < micro_batches_) {
      actions_.push_back({kind, next++, chunk, 0});
    }
  }
  void add(int times, ActionKind kind, int chunk = 0) {
    for (int i = 0; i < times; ++i) {
      add(kind, chunk);
    }
  }
  /// Of chunk 0.
  int count(ActionKind kind) { return next_[0][kind]; }
  std::vector<Action> take() { return std::move(actions_); }

 private:
  int micro_batches_;
  std::vector<std::map<ActionKind, int>> next_;  ///< [chunk]: the next micro-batch
  std::vector<Action> actions_;
};

/// The compute actions of one rank. Shapes are those of schedule_generators.hpp.
std::vector<Action> naive_actions(const Schedule& schedule, int rank);
std::vector<Action> gpipe_actions(const Schedule& schedule, int rank);
std::vector<Action> one_forward_one_backward_actions(const Schedule& schedule, int rank);
std::vector<Action> interleaved_actions(const Schedule& schedule, int rank);
std::vector<Action> zero_bubble_h1_actions(const Schedule& schedule, int rank);
std::vector<Action> zero_bubble_v_actions(const Schedule& schedule, int rank);

}  // namespace fourfold::schedule
