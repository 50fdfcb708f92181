// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// What each transport refuses in contract builds, before it says anything to the other ranks.
#include "host/pattern.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/harness/on_ranks.hpp>

#include <catch2/catch_test_macros.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::comm {
namespace {

#if FOURFOLD_CONTRACTS
using harness::Findings;
using WrongCall = std::pair<std::string, std::function<Work()>>;

bool is_refused(const std::function<Work()>& call) {
  try {
    call().wait({});
  } catch (const ContractViolation&) {
    return true;
  }
  return false;
}

TEST_CASE("wrong calls are contract violations, and leave the communicator as it was",
          "[argument_checks]") {
  harness::on_ranks([](Communicator& world, Findings& findings) {
    const int ranks = world.size();
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), 3);
    const std::vector<std::int64_t> one_more(counts.size() + 1, 3);
    Values<float> part(3);
    Values<float> whole(static_cast<std::size_t>(3 * ranks));
    Values<float> too_long(whole.size() + 1);
    Values<std::int32_t> numbers(whole.size());
    const TensorView some = view(part);
    const TensorView all = view(whole);
    const TensorView more = view(too_long);
    const TensorView of_numbers = view(numbers);
    const TensorView some_numbers = of_numbers.rows(0, 3);
    const auto sum = ReduceOp::sum;
    const WrongCall wrong_calls[] = {
        {"average of integers", [&] { return world.all_reduce(of_numbers, ReduceOp::avg, {}); }},
        {"gather by other ranks", [&] { return world.all_gather(some, all, one_more, {}); }},
        {"gather of too much", [&] { return world.all_gather(more, all, counts, {}); }},
        {"gather into too much", [&] { return world.all_gather(some, more, counts, {}); }},
        {"gather of two types", [&] { return world.all_gather(some, of_numbers, counts, {}); }},
        {"scatter by other ranks",
         [&] { return world.reduce_scatter(all, some, one_more, sum, {}); }},
        {"scatter of too much", [&] { return world.reduce_scatter(more, some, counts, sum, {}); }},
        {"scatter into too much", [&] { return world.reduce_scatter(all, more, counts, sum, {}); }},
        {"scatter of two types",
         [&] { return world.reduce_scatter(all, some_numbers, counts, sum, {}); }},
        {"scattered average of integers",
         [&] { return world.reduce_scatter(of_numbers, some_numbers, counts, ReduceOp::avg, {}); }},
        {"broadcast from nobody", [&] { return world.broadcast(some, ranks, {}); }},
        {"exchange by other ranks",
         [&] { return world.all_to_all(all, counts, all, one_more, {}); }},
        {"exchange of too much", [&] { return world.all_to_all(more, counts, all, counts, {}); }},
        {"exchange into too much", [&] { return world.all_to_all(all, counts, more, counts, {}); }},
        {"exchange of two types",
         [&] { return world.all_to_all(all, counts, of_numbers, counts, {}); }},
        {"message to oneself", [&] { return world.send(some, world.rank(), 0, {}); }},
        {"message from nobody", [&] { return world.recv(some, -1, 0, {}); }},
    };
    for (const auto& [what, call] : wrong_calls) {
      findings.check(is_refused(call), what);
    }
    const auto values = filled<float>(world.rank(), 3);
    world.all_gather(view(values), all, counts, {}).wait({});
    findings.check(whole[whole.size() - 1] == static_cast<float>(pattern(ranks - 1, 2)),
                   "the right call");
  });
}
#endif

}  // namespace
}  // namespace fourfold::comm
