// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/enum_name.hpp>
#include <fourfold/schedule/schedule.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace fourfold::schedule {
namespace {

std::optional<ChunkPlace> other_rank(std::optional<ChunkPlace> place, int rank) {
  return place && place->rank != rank ? place : std::nullopt;
}

std::optional<int> same_rank(std::optional<ChunkPlace> place, int rank) {
  return place && place->rank == rank ? std::optional(place->chunk) : std::nullopt;
}

}  // namespace

bool is_compute(ActionKind kind) noexcept {
  return kind <= ActionKind::backward_weight;
}

bool is_send(ActionKind kind) noexcept {
  return kind == ActionKind::send_activation || kind == ActionKind::send_gradient;
}

bool ends_backward(ActionKind kind) noexcept {
  return kind == ActionKind::backward || kind == ActionKind::backward_weight;
}

std::string_view name(ActionKind kind) noexcept {
  constexpr std::array<std::string_view, 8> names{
      "forward",         "backward",           "backward input", "backward weight",
      "send activation", "receive activation", "send gradient",  "receive gradient"};
  return name_in(names, kind);
}

std::string_view name(Placement placement) noexcept {
  return placement == Placement::loop ? "loop" : "vee";
}

std::string str(const Action& action, int chunks) {
  constexpr std::string_view letters = "FBIW";
  const std::string what = is_compute(action.kind)
                               ? std::string(1, letters[static_cast<std::size_t>(action.kind)])
                               : fmt::format("{} ", name(action.kind));
  return chunks == 1 ? fmt::format("{}{}", what, action.micro_batch)
                     : fmt::format("{}{}.{}", what, action.micro_batch, action.chunk);
}

int virtual_stage_of(Placement placement, int stages, const ChunkPlace& place) noexcept {
  const bool back_up = placement == Placement::vee && place.chunk == 1;
  return back_up ? 2 * stages - 1 - place.rank : place.chunk * stages + place.rank;
}

int Schedule::virtual_stage(int rank, int chunk) const noexcept {
  return virtual_stage_of(placement, stages, {rank, chunk});
}

ChunkPlace Schedule::place_of_stage(int stage) const noexcept {
  const bool back_up = placement == Placement::vee && stage >= stages;
  return back_up ? ChunkPlace{2 * stages - 1 - stage, 1}
                 : ChunkPlace{stage % stages, stage / stages};
}

std::optional<ChunkPlace> Schedule::previous(int rank, int chunk) const noexcept {
  const int stage = virtual_stage(rank, chunk);
  return stage == 0 ? std::nullopt : std::optional(place_of_stage(stage - 1));
}

std::optional<ChunkPlace> Schedule::next(int rank, int chunk) const noexcept {
  const int stage = virtual_stage(rank, chunk);
  return stage + 1 == virtual_stages() ? std::nullopt : std::optional(place_of_stage(stage + 1));
}

std::optional<ChunkPlace> Schedule::previous_peer(int rank, int chunk) const noexcept {
  return other_rank(previous(rank, chunk), rank);
}

std::optional<ChunkPlace> Schedule::next_peer(int rank, int chunk) const noexcept {
  return other_rank(next(rank, chunk), rank);
}

std::optional<int> Schedule::previous_here(int rank, int chunk) const noexcept {
  return same_rank(previous(rank, chunk), rank);
}

std::optional<int> Schedule::next_here(int rank, int chunk) const noexcept {
  return same_rank(next(rank, chunk), rank);
}

std::optional<ChunkPlace> Schedule::message_peer(int rank, const Action& action) const noexcept {
  const bool forwards =
      action.kind == ActionKind::send_activation || action.kind == ActionKind::receive_gradient;
  return forwards ? next_peer(rank, action.chunk) : previous_peer(rank, action.chunk);
}

int Schedule::slots(int rank, int chunk) const {
  int count = 0;
  for (const Action& action : ranks[rank]) {
    count = action.chunk == chunk ? std::max(count, action.slot + 1) : count;
  }
  return count;
}

int Schedule::peak_live(int rank) const {
  int live = 0;
  int peak = 0;
  for (const Action& action : ranks[rank]) {
    live += action.kind == ActionKind::forward ? 1 : ends_backward(action.kind) ? -1 : 0;
    peak = std::max(peak, live);
  }
  return peak;
}

bool Schedule::splits_backward() const {
  return std::ranges::any_of(ranks, [](const std::vector<Action>& actions) {
    return std::ranges::any_of(actions, [](const Action& action) {
      return action.kind == ActionKind::backward_input ||
             action.kind == ActionKind::backward_weight;
    });
  });
}

Schedule without_transfers(Schedule schedule) {
  for (std::vector<Action>& actions : schedule.ranks) {
    std::erase_if(actions, [](const Action& action) { return !is_compute(action.kind); });
  }
  return schedule;
}

}  // namespace fourfold::schedule
