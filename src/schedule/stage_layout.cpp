// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/schedule/split_layers.hpp>

#include <algorithm>

namespace fourfold::schedule {
namespace {

/// Chunks in the order of their last weight gradients.
std::vector<int> finishing_chunks(const Schedule& schedule, int rank) {
  std::vector<int> order;
  const std::vector<Action>& actions = schedule.ranks[rank];
  for (auto action = actions.rbegin(); action != actions.rend(); ++action) {
    if (ends_backward(action->kind) && std::ranges::count(order, action->chunk) == 0) {
      order.push_back(action->chunk);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace

std::vector<model::UnitRange> StageLayout::chunks_of(int rank) const {
  std::vector<model::UnitRange> chunks;
  for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
    chunks.push_back(stages[schedule.virtual_stage(rank, chunk)]);
  }
  return chunks;
}

int StageLayout::rank_of_unit(int unit) const {
  int stage = 0;
  while (stage < std::ssize(stages) && !stages[stage].contains(unit)) {
    ++stage;
  }
  FOURFOLD_EXPECT(stage < std::ssize(stages));
  return schedule.rank_of_stage(stage);
}

std::vector<int> StageLayout::holders(const model::ParameterSpec& spec) const {
  return spec.is_token_embedding() ? token_embedding_holders()
                                   : std::vector{rank_of_unit(spec.unit)};
}

std::vector<int> StageLayout::token_embedding_holders() const {
  const int first = rank_of_unit(0);
  const int head = rank_of_unit(stages.back().end - 1);
  return tied && head != first ? std::vector{std::min(first, head), std::max(first, head)}
                               : std::vector{first};
}

std::vector<int> StageLayout::finishing_units(int rank) const {
  const std::vector<model::UnitRange> chunks = chunks_of(rank);
  std::vector<int> order;
  for (const int chunk : finishing_chunks(schedule, rank)) {
    const model::UnitRange& units = chunks[chunk];
    for (int unit = units.end; unit-- > units.begin;) {
      order.push_back(unit);
    }
  }
  const auto embedding = std::ranges::find(order, 0);
  const auto head = std::ranges::find(order, stages.back().end - 1);
  if (tied && embedding != order.end() && head != order.end() && embedding < head) {
    std::rotate(embedding, embedding + 1, head + 1);
  }
  return order;
}

}  // namespace fourfold::schedule
