// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Schedules that fill the bubble with the weight halves of backward passes, which nobody waits for.
#include "schedule_shapes.hpp"

#include <algorithm>

namespace fourfold::schedule {

std::vector<Action> zero_bubble_h1_actions(const Schedule& schedule, int rank) {
  RankWriter writer(schedule.micro_batches, 1);
  writer.add(schedule.stages - 1 - rank, ActionKind::forward);
  while (writer.count(ActionKind::backward_input) < schedule.micro_batches) {
    writer.add(ActionKind::forward);
    writer.add(ActionKind::backward_input);
    // Rank r starts r micro-batches late with the weight halves: later ranks, which hold fewer
    // activations, may, and so every rank holds p.
    if (writer.count(ActionKind::backward_input) > rank) {
      writer.add(ActionKind::backward_weight);
    }
  }
  writer.add(rank, ActionKind::backward_weight);
  return writer.take();
}

/// The pattern of Qi et al. 2024 for ranks whose three passes take the same time. Before the first
/// gradient arrives rank r has room for 2p forward passes, split among its chunks; then each round
/// runs all three passes of a micro-batch of chunk 0 and of one of chunk 1; the last r rounds leave
/// their weight halves for the time in which the gradients travel up to the first rank. The paper
/// begins a round with the forward of chunk 0; after its backward it takes the same time and one
/// slot less.
std::vector<Action> zero_bubble_v_actions(const Schedule& schedule, int rank) {
  constexpr auto forward = ActionKind::forward;
  constexpr auto input = ActionKind::backward_input;
  constexpr auto weight = ActionKind::backward_weight;
  const int stages = schedule.stages;
  // The rounds are those of a step that fills the pipeline; a shorter one leaves gaps in them.
  const int rounds = std::max(schedule.micro_batches, 2 * stages - 1);
  RankWriter writer(schedule.micro_batches, 2);
  writer.add(2 * (stages - rank) - 1, forward, 0);
  for (int i = 0; i < rank; ++i) {
    writer.add(forward, 1);
    writer.add(forward, 0);
  }
  for (int i = 0; i < stages - rank; ++i) {
    writer.add(forward, 1);
    writer.add(input, 1);
    writer.add(weight, 1);
  }
  for (int i = 0; i < rounds - stages; ++i) {
    writer.add(input, 0);
    writer.add(weight, 0);
    writer.add(forward, 0);
    writer.add(forward, 1);
    writer.add(input, 1);
    writer.add(weight, 1);
  }
  for (int i = 0; i < rank; ++i) {
    writer.add(input, 0);
    writer.add(input, 1);
  }
  for (int i = 0; i < stages - rank; ++i) {
    writer.add(input, 0);
    writer.add(weight, 0);
  }
  writer.add(schedule.micro_batches, weight, 1);
  writer.add(schedule.micro_batches, weight, 0);
  return writer.take();
}

}  // namespace fourfold::schedule
