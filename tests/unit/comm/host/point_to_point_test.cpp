// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "pattern.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/harness/on_ranks.hpp>

#include <catch2/catch_test_macros.hpp>

#include <vector>

namespace fourfold::comm {
namespace {

using harness::Findings;
using harness::on_ranks;

TEST_CASE("rings in both directions at once", "[point_to_point]") {
  on_ranks([](Communicator& world, Findings& findings) {
    if (world.size() == 1) {
      return;  // no peer
    }
    const int next = (world.rank() + 1) % world.size();
    const int previous = (world.rank() + world.size() - 1) % world.size();
    std::vector<MessageRoute> routes;
    for (int rank = 0; rank < world.size(); ++rank) {
      routes.push_back({rank, (rank + 1) % world.size(), 1});
      routes.push_back({(rank + 1) % world.size(), rank, 2});
    }
    world.expect_messages(routes);
    for (const std::int64_t elements : {0, 1, 999, 60000}) {
      const auto up = filled<float>(world.rank(), elements);
      const auto down = filled<float>(world.rank(), elements, 3);
      Values<float> from_below(static_cast<std::size_t>(elements));
      Values<float> from_above(static_cast<std::size_t>(elements));
      // Tag 1 goes up, tag 2 down; with two ranks both come from the same peer.
      Work sending_up = world.send(view(up), next, 1, {});
      Work sending_down = world.send(view(down), previous, 2, {});
      Work receiving_down = world.recv(view(from_above), next, 2, {});
      Work receiving_up = world.recv(view(from_below), previous, 1, {});
      receiving_up.wait({});
      receiving_down.wait({});
      sending_down.wait({});
      sending_up.wait({});
      findings.check(from_below == filled<float>(previous, elements), "upwards");
      findings.check(from_above == filled<float>(next, elements, 3), "downwards");
    }
  });
}

TEST_CASE("messages of one tag keep their order, tags do not wait for each other",
          "[point_to_point]") {
  on_ranks([](Communicator& world, Findings& findings) {
    if (world.size() == 1) {
      return;
    }
    constexpr int count = 20;
    world.expect_messages(
        std::vector<MessageRoute>{{0, world.size() - 1, 0}, {0, world.size() - 1, 1}});
    if (world.rank() == 0) {
      std::vector<Work> sent;
      Values<std::int64_t> values(count);
      for (int i = 0; i < count; ++i) {
        values[i] = i;
        sent.push_back(world.send({&values[i], {1}}, world.size() - 1, i % 2, {}));
      }
      for (Work& work : sent) {
        work.wait({});
      }
    } else if (world.rank() == world.size() - 1) {
      Values<std::int64_t> value(1, -1);
      for (int i = 1; i < count; i += 2) {  // the odd ones first
        world.recv(view(value), 0, 1, {}).wait({});
        findings.check(value[0] == i, "odd");
      }
      for (int i = 0; i < count; i += 2) {
        world.recv(view(value), 0, 0, {}).wait({});
        findings.check(value[0] == i, "even");
      }
    }
    world.barrier();
  });
}

TEST_CASE("a collective in flight does not hold up messages between its ranks",
          "[point_to_point]") {
  on_ranks([](Communicator& world, Findings& findings) {
    auto values = filled<float>(world.rank(), 50000);
    Values<std::int32_t> token(1, 0);
    if (world.size() > 1) {
      world.expect_messages(std::vector<MessageRoute>{{0, world.size() - 1, 5}});
    }
    // Rank 0 starts the collective before it sends, the last starts it after it has received.
    if (world.size() > 1 && world.rank() == world.size() - 1) {
      world.recv(view(token), 0, 5, {}).wait({});
      findings.check(token[0] == 77, "token");
    }
    Work reduction = world.all_reduce(view(values), ReduceOp::sum, {});
    if (world.size() > 1 && world.rank() == 0) {
      token[0] = 77;
      world.send(view(token), world.size() - 1, 5, {}).wait({});
    }
    reduction.wait({});
    findings.check(first_wrong(values,
                               [&](std::int64_t i) {
                                 return reduced_pattern(ReduceOp::sum, world.size(), i);
                               }) < 0,
                   "sum");
  });
}

}  // namespace
}  // namespace fourfold::comm
