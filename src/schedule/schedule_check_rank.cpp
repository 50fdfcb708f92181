// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// What can be said of one rank's list alone.
#include "schedule_places.hpp"

#include <fmt/format.h>

#include <vector>

namespace fourfold::schedule {
namespace {

/// What a rank has done with one micro-batch in one chunk.
struct Progress {
  bool activation_received = false;
  bool forward = false;
  bool activation_sent = false;
  bool gradient_received = false;
  bool input = false;   ///< backward or backward_input
  bool weight = false;  ///< backward or backward_weight
  bool gradient_sent = false;
  int slot = -1;
};

/// [chunk][micro-batch]
using ProgressTable = std::vector<std::vector<Progress>>;

ProgressTable nothing_done(const Schedule& schedule) {
  return ProgressTable(schedule.chunks, std::vector<Progress>(schedule.micro_batches));
}

/// Why a compute action cannot be here, and notes that it is done.
const char* compute_defect(const Schedule& schedule, int rank, const Action& action,
                           ProgressTable& table) {
  Progress& mine = table[action.chunk][action.micro_batch];
  if (action.kind == ActionKind::forward) {
    const auto earlier = schedule.previous_here(rank, action.chunk);
    if (mine.forward) {
      return "is done twice; remove one of them";
    }
    if (earlier && !table[*earlier][action.micro_batch].forward) {
      return "comes before the forward of the chunk before it, which lies on the same rank; move "
             "it after that";
    }
    mine.forward = true;
    return nullptr;
  }
  const bool does_weight = action.kind != ActionKind::backward_input;
  if (action.kind != ActionKind::backward_weight) {
    const auto later = schedule.next_here(rank, action.chunk);
    if (mine.input) {
      return "is done twice; remove one of them";
    }
    if (!mine.forward) {
      return "comes before its forward; move it after that";
    }
    if (later && !table[*later][action.micro_batch].input) {
      return "comes before the backward of the chunk after it, which lies on the same rank; move "
             "it after that";
    }
    mine.input = true;
  }
  if (does_weight && mine.weight) {
    return "is done twice; remove one of them";
  }
  if (does_weight && !mine.input) {
    return "comes before the input half of this backward; move it after that, or write B for both";
  }
  mine.weight = mine.weight || does_weight;
  return nullptr;
}

/// The buffers of a slot, by the micro-batch they hold; -1: none.
struct Slot {
  int occupant = -1;
  int output = -1;
  int gradient = -1;  ///< of the input, made by backward
};

/// Goes through one rank's list with its buffers.
class RankBuffers {
 public:
  RankBuffers(const Schedule& schedule, int rank)
      : schedule_(schedule), rank_(rank), progress_(nothing_done(schedule)) {
    for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
      slots_.emplace_back(schedule.slots(rank, chunk));
    }
  }

  /// Why this action cannot be here; null: it can. @pre check_compute found nothing
  const char* pass(const Action& action) {
    Progress& mine = progress_[action.chunk][action.micro_batch];
    Slot& slot = slots_[action.chunk][action.slot];
    const bool takes =
        !mine.activation_received &&
        (action.kind == ActionKind::receive_activation || action.kind == ActionKind::forward);
    if (takes && slot.occupant >= 0) {
      return "takes a slot that is in use";
    }
    if (!takes && mine.slot != action.slot) {
      return "is in another slot than its activation";
    }
    switch (action.kind) {
      case ActionKind::forward:
        return forward(action, mine, slot);
      case ActionKind::backward:
      case ActionKind::backward_input:
        return backward(action, mine, slot);
      case ActionKind::backward_weight:
        slot.occupant = -1;
        return nullptr;
      case ActionKind::receive_activation:
        return receive_activation(action, mine, slot);
      case ActionKind::receive_gradient:
        return receive_gradient(action, mine, slot);
      case ActionKind::send_activation:
        return send(schedule_.next_peer(rank_, action.chunk).has_value(), mine.activation_sent,
                    slot.output == action.micro_batch);
      case ActionKind::send_gradient:
        break;
    }
    return send(schedule_.previous_peer(rank_, action.chunk).has_value(), mine.gradient_sent,
                slot.gradient == action.micro_batch);
  }

  /// A message that is never sent: "send activation 3"; empty: none.
  std::string unsent() const {
    for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
      for (int i = 0; i < schedule_.micro_batches; ++i) {
        const Progress& mine = progress_[chunk][i];
        if (schedule_.next_peer(rank_, chunk) && !mine.activation_sent) {
          return str({ActionKind::send_activation, i, chunk, 0}, schedule_.chunks);
        }
        if (schedule_.previous_peer(rank_, chunk) && !mine.gradient_sent) {
          return str({ActionKind::send_gradient, i, chunk, 0}, schedule_.chunks);
        }
      }
    }
    return "";
  }

 private:
  const char* forward(const Action& action, Progress& mine, Slot& slot) {
    if (schedule_.previous_peer(rank_, action.chunk) && !mine.activation_received) {
      return "comes before the receive of its activation";
    }
    mine.forward = true;
    mine.slot = action.slot;
    slot.occupant = action.micro_batch;
    slot.output = action.micro_batch;
    return nullptr;
  }

  const char* backward(const Action& action, Progress& mine, Slot& slot) {
    if (schedule_.next_peer(rank_, action.chunk) && !mine.gradient_received) {
      return "comes before the receive of its gradient";
    }
    const auto earlier = schedule_.previous_here(rank_, action.chunk);
    if (earlier) {  // the gradient goes over there
      slots_[*earlier][progress_[*earlier][action.micro_batch].slot].gradient = -1;
    }
    slot.gradient = action.micro_batch;
    if (action.kind == ActionKind::backward) {
      slot.occupant = -1;
    }
    return nullptr;
  }

  const char* receive_activation(const Action& action, Progress& mine, Slot& slot) {
    if (!schedule_.previous_peer(rank_, action.chunk)) {
      return "receives what no other rank sends";
    }
    if (mine.activation_received) {
      return "is done twice";
    }
    mine.activation_received = true;
    mine.slot = action.slot;
    slot.occupant = action.micro_batch;
    return nullptr;
  }

  const char* receive_gradient(const Action& action, Progress& mine, Slot& slot) {
    if (!schedule_.next_peer(rank_, action.chunk)) {
      return "receives what no other rank sends";
    }
    if (mine.gradient_received) {
      return "is done twice";
    }
    if (!mine.forward) {
      return "comes before its forward";
    }
    mine.gradient_received = true;
    slot.gradient = -1;
    return nullptr;
  }

  static const char* send(bool has_peer, bool& sent, bool holds) {
    if (!has_peer) {
      return "sends to no other rank";
    }
    if (sent) {
      return "is done twice";
    }
    if (!holds) {
      return "sends a buffer that does not hold it";
    }
    sent = true;
    return nullptr;
  }

  const Schedule& schedule_;
  int rank_;
  ProgressTable progress_;
  std::vector<std::vector<Slot>> slots_;  ///< [chunk][slot]
};

}  // namespace

Defect check_compute(const Schedule& schedule, const Places& places) {
  for (int rank = 0; rank < schedule.stages; ++rank) {
    ProgressTable table = nothing_done(schedule);
    for (int index = 0; index < std::ssize(schedule.ranks[rank]); ++index) {
      const Action& action = schedule.ranks[rank][index];
      if (const char* why =
              is_compute(action.kind) ? compute_defect(schedule, rank, action, table) : nullptr) {
        return fmt::format("{} {}", places.action(schedule, rank, index), why);
      }
    }
    for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
      for (int i = 0; i < schedule.micro_batches; ++i) {
        const Progress& mine = table[chunk][i];
        if (!mine.weight) {
          const ActionKind kind = !mine.forward ? ActionKind::forward
                                  : !mine.input ? ActionKind::backward
                                                : ActionKind::backward_weight;
          return fmt::format("{} has no {}: the {} of micro-batch {} is missing; add it",
                             places.rank(rank), str({kind, i, chunk, 0}, schedule.chunks),
                             name(kind), i);
        }
      }
    }
  }
  return std::nullopt;
}

Defect check_buffers(const Schedule& schedule, const Places& places) {
  for (int rank = 0; rank < schedule.stages; ++rank) {
    RankBuffers buffers(schedule, rank);
    for (int index = 0; index < std::ssize(schedule.ranks[rank]); ++index) {
      if (const char* why = buffers.pass(schedule.ranks[rank][index])) {
        return fmt::format("{} {}", places.action(schedule, rank, index), why);
      }
    }
    if (const std::string missing = buffers.unsent(); !missing.empty()) {
      return fmt::format("{} has no '{}': what another rank waits for is never sent",
                         places.rank(rank), missing);
    }
  }
  return std::nullopt;
}

}  // namespace fourfold::schedule
