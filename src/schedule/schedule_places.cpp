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
  return lines.empty() ? fmt::format("rank {}", rank)
                       : fmt::format("line {} (rank {})", lines[rank], rank);
}

std::string Places::action(const Schedule& schedule, int rank, int index) const {
  const std::vector<Action>& actions = schedule.ranks[rank];
  const Action& action = actions[index];
  const auto compute = is_compute(action.kind)
                           ? actions.begin() + index
                           : std::ranges::find_if(actions, [&](const Action& other) {
                               return belongs_to(action, other);
                             });
  if (lines.empty() || compute == actions.end()) {
    return fmt::format("rank {}, action {} ({})", rank, index, str(action, schedule.chunks));
  }
  const auto number = std::count_if(actions.begin(), compute,
                                    [](const Action& other) { return is_compute(other.kind); });
  const std::string place = fmt::format("line {}, column {} ({})", lines[rank],
                                        columns[rank][number], str(*compute, schedule.chunks));
  return is_compute(action.kind)
             ? place
             : fmt::format("what {} {}", place, is_send(action.kind) ? "sends" : "receives");
}

}  // namespace fourfold::schedule
