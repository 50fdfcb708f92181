// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/train/same_tokens.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <string>
#include <vector>

using fourfold::comm::Communicator;
using fourfold::comm::run_ranks;
using fourfold::train::require_same_on_ranks;
using Lines = std::vector<std::string>;

namespace {

/// What each rank is told when they say these lines; empty: nothing.
std::vector<std::string> complaints(const std::vector<Lines>& lines_by_rank) {
  std::vector<std::string> told(lines_by_rank.size());
  run_ranks(static_cast<int>(lines_by_rank.size()), [&](Communicator& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    try {
      require_same_on_ranks(lines_by_rank[rank], world);
    } catch (const fourfold::UserError& error) {
      told[rank] = error.what();
      told[rank] = told[rank].substr(0, told[rank].find("); start"));
    }
  });
  return told;
}

}  // namespace

TEST_CASE("ranks that say the same go on", "[same_on_ranks]") {
  const Lines lines{"a = 1", "b = \"x y\""};
  CHECK(complaints({lines, lines, lines}) == std::vector<std::string>(3));
  CHECK(complaints({lines}) == std::vector<std::string>(1));
}

TEST_CASE("the first line that differs is told on all ranks, with who says what",
          "[same_on_ranks]") {
  const auto told = complaints({{"a = 1", "b = 2", "c = 3"},
                                {"a = 1", "b = 2", "c = 4"},  // differs later than rank 3
                                {"a = 1", "b = 2", "c = 3"},
                                {"a = 1", "b = 9", "c = 4"},
                                {"a = 1", "b = 7", "c = 3"},
                                {"a = 1", "b = 9", "c = 3"}});
  CHECK(told == std::vector<std::string>(6,
                                         "the ranks were started differently (b = 2 on ranks 0-2; "
                                         "b = 9 on ranks 3, 5; b = 7 on rank 4"));
}

TEST_CASE("every key of the run file is compared", "[same_on_ranks]") {
  fourfold::runfile::RunConfig config;
  const Lines before = fourfold::train::lines_of(config);
  CHECK(std::ranges::count(before, "optim.lr = 0.0006") == 1);
  config.checkpoint.resume = "never";
  config.data.train = {"two\nlines"};
  const Lines after = fourfold::train::lines_of(config);
  REQUIRE(after.size() == before.size());
  CHECK(std::ranges::count(after, "checkpoint.resume = \"never\"") == 1);
  CHECK(std::ranges::none_of(
      after, [](const std::string& line) { return line.find('\n') != std::string::npos; }));
  int differing = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    differing += before[i] != after[i] ? 1 : 0;
  }
  CHECK(differing == 2);
}
