// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "schedule_places.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fourfold::schedule {
namespace {

/// Whether a send or receive takes or feeds this compute action.
bool belongs_to(const Action& transfer, const Action& compute) {
  const bool forward = transfer.kind == ActionKind::send_activation ||
                       transfer.kind == ActionKind::receive_activation;
  const bool fits =
      forward ? compute.kind == ActionKind::forward
              : compute.kind == ActionKind::backward || compute.kind == ActionKind::backward_input;
  return fits && compute.micro_batch == transfer.micro_batch && compute.chunk == transfer.chunk;
}

}  // namespace

std::string Places::rank(int rank) const {
  return fmt::format("rank {}", rank);
}

std::string Places::action(int rank, int index) const {
  return fmt::format("rank {}, action {} ({})", rank, index,
                     str(schedule_->ranks[rank][index], schedule_->chunks));
}

std::string CellPlaces::rank(int rank) const {
  return fmt::format("line {} (rank {})", table_->lines[rank], rank);
}

std::string CellPlaces::action(int rank, int index) const {
  const std::vector<Action>& actions = schedule().ranks[rank];
  const Action& action = actions[index];
  const auto compute = is_compute(action.kind)
                           ? actions.begin() + index
                           : std::ranges::find_if(actions, [&](const Action& other) {
                               return belongs_to(action, other);
                             });
  if (compute == actions.end()) {
    return Places::action(rank, index);
  }
  const auto number = std::count_if(actions.begin(), compute,
                                    [](const Action& other) { return is_compute(other.kind); });
  const Cell cell = table_->cells[rank][number];
  const std::string place = fmt::format("line {}, column {} ({})", cell.line, cell.column,
                                        str(*compute, schedule().chunks));
  return is_compute(action.kind)
             ? place
             : fmt::format("what {} {}", place, is_send(action.kind) ? "sends" : "receives");
}

}  // namespace fourfold::schedule
