// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/schedule/schedule_ahead.hpp>
#include <fourfold/schedule/schedule_check.hpp>
#include <fourfold/schedule/schedule_csv.hpp>
#include <fourfold/schedule/schedule_dependencies.hpp>
#include <fourfold/schedule/schedule_generators.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace fourfold::schedule {
namespace {

std::vector<Action> sorted(std::vector<Action> actions) {
  std::ranges::sort(actions, {}, [](const Action& action) {
    return std::tuple(action.kind, action.micro_batch, action.chunk, action.slot);
  });
  return actions;
}

/// The beginning of each list, or what is behind it, as a schedule of its own.
Schedule part(const Schedule& whole, bool beginning) {
  Schedule result = whole;
  for (std::size_t rank = 0; rank < result.ranks.size(); ++rank) {
    std::vector<Action>& actions = result.ranks[rank];
    const auto border = actions.begin() + whole.ahead[rank];
    actions = beginning ? std::vector<Action>(actions.begin(), border)
                        : std::vector<Action>(border, actions.end());
  }
  return result;
}

/// Channels of which not every message is both sent and received in it.
int loose_channels(const Schedule& schedule) {
  int loose = 0;
  for (const Channel& channel : channels(schedule)) {
    loose += channel.sends.size() == channel.receives.size() ? 0 : 1;
  }
  return loose;
}

bool runs_through(const Schedule& schedule) {
  const ExecutionOrder order = execution_order(schedule, dependencies(schedule));
  for (int rank = 0; rank < schedule.stages; ++rank) {
    if (order.reached[rank] != std::ssize(schedule.ranks[rank])) {
      return false;
    }
  }
  return true;
}

std::vector<int> forwards_ahead(const Schedule& schedule) {
  std::vector<int> forwards;
  for (const std::vector<Action>& actions : part(schedule, true).ranks) {
    forwards.push_back(
        static_cast<int>(std::ranges::count(actions, ActionKind::forward, &Action::kind)));
  }
  return forwards;
}

std::optional<Schedule> schedule_of(const ScheduleRequest& request) {
  try {
    return make_schedule(request);
  } catch (const UserError&) {
    return std::nullopt;  // it takes other numbers of micro-batches
  }
}

}  // namespace

TEST_CASE("what goes ahead is a whole by itself, and so is the rest", "[schedule_ahead]") {
  int checked = 0;
  for (const std::string name : {"naive", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"}) {
    for (const int stages : {1, 2, 3, 4, 8}) {
      for (const int micro_batches : {1, 2, 3, 8, 16, 17}) {
        CAPTURE(name, stages, micro_batches);
        const auto before =
            schedule_of({.name = name, .stages = stages, .micro_batches = micro_batches});
        if (!before) {
          continue;
        }
        ++checked;
        const Schedule after = forwards_first(*before);
        CHECK_FALSE(check_schedule(after).has_value());
        REQUIRE(std::ssize(after.ahead) == stages);
        for (int rank = 0; rank < stages; ++rank) {
          CHECK(sorted(after.ranks[rank]) == sorted(before->ranks[rank]));
          CHECK(after.peak_live(rank) <= before->peak_live(rank));
        }
        REQUIRE(loose_channels(part(after, true)) == 0);
        CHECK(loose_channels(part(after, false)) == 0);
        CHECK(runs_through(part(after, true)));
        CHECK(std::ranges::min(forwards_ahead(after)) >= 1);
      }
    }
  }
  CHECK(checked > 120);
}

TEST_CASE("the warm-up goes ahead", "[schedule_ahead]") {
  const auto ahead = [](const std::string& name, int stages, int micro_batches) {
    return forwards_ahead(forwards_first(
        make_schedule({.name = name, .stages = stages, .micro_batches = micro_batches})));
  };
  CHECK(ahead("1f1b", 4, 8) == std::vector{4, 3, 2, 1});
  CHECK(ahead("1f1b", 4, 2) == std::vector{2, 2, 2, 1});
  CHECK(ahead("gpipe", 3, 5) == std::vector{5, 5, 5});
  CHECK(ahead("naive", 3, 5) == std::vector{1, 1, 1});
}

TEST_CASE("a schedule from a file goes ahead too", "[schedule_ahead]") {
  const Schedule after =
      forwards_first(read_schedule_csv("F0,F1,B0,B1\nF0,B0,F1,B1\n", "mine.csv", 2, 2));
  CHECK_FALSE(check_schedule(after).has_value());
  CHECK(loose_channels(part(after, true)) == 0);
  CHECK(forwards_ahead(after) == std::vector{2, 1});
}

}  // namespace fourfold::schedule
