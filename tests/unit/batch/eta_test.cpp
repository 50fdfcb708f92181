// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/run_view.hpp>

#include <catch2/catch_test_macros.hpp>

#include <optional>

using namespace fourfold::batch;

namespace {

RunView view_of(double now_unix_s, double remaining_s, RunState state,
                std::optional<double> began_unix_s, double deadline_unix_s) {
  RunView view;
  view.now_unix_s = now_unix_s;
  view.verdict.state = state;
  view.deadline_unix_s = deadline_unix_s;
  view.remaining_s = remaining_s;
  if (began_unix_s) {
    view.attempts = {{.began_unix_s = *began_unix_s}};
  }
  return view;
}

}  // namespace

TEST_CASE("a run is done before its job ends, or needs more jobs", "[eta]") {
  // A job of 100 s of which 60 are over.
  RunView view = view_of(1060, 40, RunState::running, 1000, 1100);
  CHECK(eta(view).in_time == true);
  CHECK(eta(view).finish_unix_s == 1100);
  CHECK(eta(view).more_jobs == 0);
  view.remaining_s = 41;
  CHECK(eta(view).in_time == false);
  CHECK(eta(view).more_jobs == 1);
  view.remaining_s = 40 + 250;
  CHECK(eta(view).more_jobs == 3);
  view.now_unix_s = 2000;  // long past its end
  CHECK(eta(view).more_jobs == 3);
}

TEST_CASE("a run that has stopped needs jobs for all that is left", "[eta]") {
  const RunView view = view_of(5000, 250, RunState::stopped, 1000, 1100);
  CHECK_FALSE(eta(view).in_time);
  CHECK(eta(view).more_jobs == 3);
  CHECK_FALSE(eta(view_of(5000, 250, RunState::stopped, std::nullopt, 1100)).more_jobs);
  // A job of no length.
  RunView none = view_of(5000, 250, RunState::stopped, 1100, 1100);
  CHECK_FALSE(eta(none).more_jobs);
  none.deadline_unix_s.reset();
  CHECK(eta(none).finish_unix_s == 5250);
}

TEST_CASE("what takes for ever has a number", "[eta]") {
  CHECK(eta(view_of(0, 1e300, RunState::running, 0, 1)).more_jobs == 1'000'000'000);
}
