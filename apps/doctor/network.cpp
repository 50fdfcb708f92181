// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "node_facts.hpp"
#include "records.hpp"
#include "transport.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/device/buffer.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace fourfold::doctor {
namespace {

constexpr int most_distances = 6;
constexpr int link_elements = 1 << 20;

}  // namespace

std::vector<double> measure_links(comm::Communicator& leaders, double seconds) {
  const int size = leaders.size();
  const device::Tensor out(DType::f32, {link_elements});
  const device::Tensor in(DType::f32, {link_elements});
  std::vector<double> received_gb_s(size, 0);
  const double end_s = steady_time_s() + seconds;
  bool has_time = size > 1;
  for (int round = 0; has_time; ++round) {
    int distance = 1;
    for (int i = round % most_distances; i > 0; --i) {
      distance = distance * 2 < size ? distance * 2 : 1;
    }
    const int to = (leaders.rank() + distance) % size;
    const int from = (leaders.rank() + size - distance) % size;
    leaders.barrier();
    const double start_s = steady_time_s();
    comm::Work received = leaders.recv(in, from, 0, {});
    comm::Work sent = leaders.send(out, to, 0, {});
    received.wait({});
    const double rate = link_elements * 4e-9 / (steady_time_s() - start_s);
    sent.wait({});
    received_gb_s[from] = std::max(received_gb_s[from], rate);
    const bool goes_on = round + 1 < most_distances || steady_time_s() < end_s;
    has_time = round + 1 < 3 * most_distances && holds_on_all(leaders, goes_on);
  }
  return received_gb_s;
}

std::vector<double> best_links(const std::vector<NodeFacts>& nodes) {
  std::vector<double> best(nodes.size(), 0);
  for (std::size_t to = 0; to < nodes.size(); ++to) {
    for (std::size_t from = 0; from < nodes[to].received_gb_s.size(); ++from) {
      const double gb_s = nodes[to].received_gb_s[from];
      best[to] = std::max(best[to], gb_s);
      best.at(from) = std::max(best.at(from), gb_s);
    }
  }
  return best;
}

Check network_check(const Ranks& ranks, const std::vector<NodeFacts>& nodes) {
  Check check("network");
  if (nodes.size() == 1) {
    check.say("one node: nothing is sent");
    return check;
  }
  const std::vector<double> best = best_links(nodes);
  const std::size_t worst = std::ranges::min_element(best) - best.begin();
  check.say(
      fmt::format("{:.2f} GB/s from node to node (median of their best); slowest {} with {:.2f}",
                  median(best), nodes[worst].node, best[worst]));
  for (const std::size_t i : slow_ones(best)) {
    const std::string finding =
        fmt::format("{} exchanges at most {:.2f} GB/s with any other, the median is {:.2f}",
                    nodes[i].node, best[i], median(best));
    if (!oversubscribed(ranks).empty()) {
      check.warn(finding + no_word_of_transport);
    } else {
      check.fail_nodes({nodes[i].node},
                       finding + " (its adapter or cable); leave it out, and have it looked at");
    }
  }
  return check;
}

}  // namespace fourfold::doctor
