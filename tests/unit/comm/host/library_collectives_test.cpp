// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// The MPI library's own collectives, on the ranks and in the order of a communicator of ours.
#include "pattern.hpp"

#include <fourfold/comm/library_collectives.hpp>
#include <fourfold/harness/on_ranks.hpp>

#include <catch2/catch_test_macros.hpp>

namespace fourfold::comm {
namespace {

using harness::Findings;
using harness::on_ranks;

void check_on(Communicator& group, Findings& findings) {
  LibraryCollectives library(group);
  const int ranks = group.size();
  const int rank = group.rank();
  constexpr std::int64_t count = 1021;
  auto sums = filled<float>(rank, count);
  library.all_reduce(view(sums), ReduceOp::sum);
  const auto sum_at = [ranks](std::int64_t i) { return reduced_pattern(ReduceOp::sum, ranks, i); };
  findings.check(first_wrong(sums, sum_at) < 0, "all_reduce");

  const auto own = filled<BFloat16>(rank, count);
  Values<BFloat16> gathered(static_cast<std::size_t>(count * ranks));
  library.all_gather(view(own), view(gathered));
  for (int other = 0; other < ranks; ++other) {
    findings.check(gathered[static_cast<std::size_t>(other * count + 5)] ==
                       number<BFloat16>(pattern(other, 5)),
                   "all_gather");
  }

  const auto all = filled<double>(rank, count * ranks);
  Values<double> part(static_cast<std::size_t>(count));
  library.reduce_scatter(view(all), view(part), ReduceOp::sum);
  findings.check(first_wrong(part, [&](std::int64_t i) { return sum_at(rank * count + i); }) < 0,
                 "reduce_scatter");

  Values<double> dealt(all.size());
  library.all_to_all(view(all), view(dealt));
  for (int other = 0; other < ranks; ++other) {
    findings.check(
        dealt[static_cast<std::size_t>(other * count + 7)] == pattern(other, rank * count + 7),
        "all_to_all");
  }

  Values<float> received(static_cast<std::size_t>(count));
  const auto sent = filled<float>(rank, count);
  const int before = (rank + ranks - 1) % ranks;
  library.exchange(view(sent), (rank + 1) % ranks, view(received), before);
  findings.check(received == filled<float>(before, count), "exchange");
}

TEST_CASE("the library's collectives work on any group of ours", "[library_collectives]") {
  on_ranks([](Communicator& world, Findings& findings) {
    check_on(world, findings);
    // Turned round, so that a rank that is taken for the world's would be seen.
    const auto half = world.split(world.rank() % 2, -world.rank(), "half");
    check_on(*half, findings);
  });
  CHECK_FALSE(LibraryCollectives::can_reduce(DType::bf16));
  CHECK(LibraryCollectives::can_reduce(DType::f32));
  CHECK_FALSE(LibraryCollectives::library().empty());
}

}  // namespace
}  // namespace fourfold::comm
