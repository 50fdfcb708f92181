// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/plan/simulate.hpp>
#include <fourfold/schedule/schedule_dependencies.hpp>

#include <algorithm>
#include <cstddef>

namespace fourfold::plan {
namespace {

using schedule::Action;
using schedule::ActionKind;

double cost_s(const PassCosts& costs, ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return costs.forward_s;
    case ActionKind::backward_input:
      return costs.backward_input_s;
    case ActionKind::backward_weight:
      return costs.backward_weight_s;
    default:
      break;
  }
  return costs.backward_s.value_or(costs.backward_input_s + costs.backward_weight_s);
}

class Simulation {
 public:
  Simulation(const schedule::Schedule& schedule, const ScheduleCosts& costs)
      : schedule_(schedule),
        costs_(costs),
        needs_(schedule::dependencies(schedule)),
        clock_s_(schedule.ranks.size(), 0),
        messages_(needs_.transfers.size()),
        timeline_(schedule::empty_timeline(schedule)) {}

  schedule::Timeline run() {
    const auto order = schedule::execution_order(schedule_, needs_);
    timeline_.events.reserve(order.done.size());
    for (const schedule::ActionPlace& place : order.done) {
      step(place);
    }
    return std::move(timeline_);
  }

 private:
  struct Message {
    int posted = 0;
    double send_s = 0;
    double receive_s = 0;
    double complete_s = 0;
  };

  void step(const schedule::ActionPlace& place) {
    const Action& action = schedule_.ranks[place.rank][place.index];
    const schedule::Dependencies::Node& node = needs_.nodes[place.rank][place.index];
    double& clock_s = clock_s_[place.rank];
    for (const int wait : node.waits) {
      clock_s = wait < 0 ? clock_s : std::max(clock_s, messages_[wait].complete_s);
    }
    if (node.transfer < 0) {
      const int stage = schedule_.virtual_stage(place.rank, action.chunk);
      const double begin_s = clock_s;
      clock_s += cost_s(costs_.stages[stage], action.kind);
      timeline_.events.push_back({place.rank, action, begin_s, clock_s});
      return;
    }
    Message& message = messages_[node.transfer];
    (schedule::is_send(action.kind) ? message.send_s : message.receive_s) = clock_s;
    if (++message.posted == 2) {
      complete(needs_.transfers[node.transfer], message);
    }
  }

  void complete(const schedule::Transfer& transfer, Message& message) {
    const Action& send = schedule_.ranks[transfer.send.rank][transfer.send.index];
    const Action& receive = schedule_.ranks[transfer.receive.rank][transfer.receive.index];
    const int stage = schedule_.virtual_stage(transfer.send.rank, send.chunk);
    const int link = send.kind == ActionKind::send_activation ? stage : stage - 1;
    double begin_s = std::max(message.send_s, message.receive_s);
    if (transfer.before >= 0) {
      begin_s = std::max(begin_s, messages_[transfer.before].complete_s);
    }
    message.complete_s = begin_s + (costs_.links_s.empty() ? 0 : costs_.links_s[link]);
    timeline_.events.push_back({transfer.send.rank, send, message.send_s, message.complete_s});
    timeline_.events.push_back(
        {transfer.receive.rank, receive, message.receive_s, message.complete_s});
  }

  const schedule::Schedule& schedule_;
  const ScheduleCosts& costs_;
  schedule::Dependencies needs_;
  std::vector<double> clock_s_;  ///< [rank] when it is free
  std::vector<Message> messages_;
  schedule::Timeline timeline_;
};

}  // namespace

ScheduleCosts even_costs(const schedule::Schedule& schedule, const PassCosts& rank, double link_s) {
  const double chunks = schedule.chunks;
  const std::size_t stages = schedule.virtual_stages();
  return {std::vector<PassCosts>(stages, {rank.forward_s / chunks, rank.backward_input_s / chunks,
                                          rank.backward_weight_s / chunks}),
          std::vector<double>(stages - 1, link_s)};
}

schedule::Timeline simulate(const schedule::Schedule& schedule, const ScheduleCosts& costs) {
  FOURFOLD_EXPECT(std::ssize(costs.stages) == schedule.virtual_stages());
  FOURFOLD_EXPECT(costs.links_s.empty() || costs.links_s.size() + 1 == costs.stages.size());
  return Simulation(schedule, costs).run();
}

}  // namespace fourfold::plan
