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

struct Message {
  int posted = 0;  ///< ends
  double send_s = 0;
  double receive_s = 0;
  double complete_s = 0;
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
  const schedule::Dependencies needs = schedule::dependencies(schedule);
  std::vector<double> clock_s(schedule.ranks.size(), 0);  // when each rank is free
  std::vector<Message> messages(needs.transfers.size());
  schedule::Timeline timeline = schedule::empty_timeline(schedule);
  const auto complete = [&](const schedule::Transfer& transfer, Message& message) {
    const Action& send = schedule.ranks[transfer.send.rank][transfer.send.index];
    const Action& receive = schedule.ranks[transfer.receive.rank][transfer.receive.index];
    const int stage = schedule.virtual_stage(transfer.send.rank, send.chunk);
    const int link = send.kind == ActionKind::send_activation ? stage : stage - 1;
    double begin_s = std::max(message.send_s, message.receive_s);
    if (transfer.before >= 0) {
      begin_s = std::max(begin_s, messages[transfer.before].complete_s);
    }
    message.complete_s = begin_s + (costs.links_s.empty() ? 0 : costs.links_s[link]);
    timeline.events.push_back({transfer.send.rank, send, message.send_s, message.complete_s});
    timeline.events.push_back(
        {transfer.receive.rank, receive, message.receive_s, message.complete_s});
  };
  const std::vector<schedule::ActionPlace> order = schedule::execution_order(schedule, needs);
  timeline.events.reserve(order.size());
  for (const auto& [rank, index] : order) {
    const Action& action = schedule.ranks[rank][index];
    const schedule::Dependencies::Node& node = needs.nodes[rank][index];
    double& now_s = clock_s[rank];
    for (const int wait : node.waits) {
      now_s = wait < 0 ? now_s : std::max(now_s, messages[wait].complete_s);
    }
    if (node.transfer < 0) {
      const double begin_s = now_s;
      now_s += cost_s(costs.stages[schedule.virtual_stage(rank, action.chunk)], action.kind);
      timeline.events.push_back({rank, action, begin_s, now_s});
      continue;
    }
    Message& message = messages[node.transfer];
    (schedule::is_send(action.kind) ? message.send_s : message.receive_s) = now_s;
    if (++message.posted == 2) {
      complete(needs.transfers[node.transfer], message);
    }
  }
  return timeline;
}

}  // namespace fourfold::plan
