// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/plan/simulate.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace fourfold::plan {
namespace {

/// Stages, and micro-batches as the literature has them: one per stage, two, and an odd number.
std::vector<schedule::ScheduleRequest> cases(const std::string& name, int chunks = 0) {
  std::vector<schedule::ScheduleRequest> list;
  for (const int stages : {2, 4, 8, 16}) {
    for (const int micro_batches : {stages, 2 * stages, 4 * stages + 1}) {
      list.push_back(
          {.name = name, .stages = stages, .micro_batches = micro_batches, .chunks = chunks});
    }
  }
  return list;
}

/// Multiples of 3/4, so that every sum is exact, also of thirds.
const std::vector<PassCosts>& some_costs() {
  static const std::vector<PassCosts> costs = {{3, 3, 3},      {3, 6, 3},     {6, 6, 4.5},
                                               {9, 3.75, 1.5}, {3, 3, 0},     {0.75, 12, 0.75},
                                               {3, 3, 6},      {6, 10.5, 7.5}};
  return costs;
}

schedule::TimelineSummary simulated(const schedule::ScheduleRequest& request,
                                    const PassCosts& costs) {
  const schedule::Schedule schedule = schedule::make_schedule(request);
  return summarize(simulate(schedule, even_costs(schedule, costs)));
}

/// Checks every case against the closed form; how many cases have one.
int check_bubbles(const std::vector<schedule::ScheduleRequest>& requests) {
  int with_closed_form = 0;
  for (const schedule::ScheduleRequest& request : requests) {
    for (const PassCosts& costs : some_costs()) {
      const auto closed_form = bubble_closed_form(request, costs);
      if (!closed_form) {
        continue;
      }
      ++with_closed_form;
      INFO(request.name << " p " << request.stages << " m " << request.micro_batches << " v "
                        << request.chunks << " costs " << costs.forward_s << ","
                        << costs.backward_input_s << "," << costs.backward_weight_s);
      const schedule::TimelineSummary summary = simulated(request, costs);
      for (int rank = 0; rank < request.stages; ++rank) {
        CHECK(summary.bubble_s(rank) == *closed_form);
      }
    }
  }
  return with_closed_form;
}

TEST_CASE("simulated bubbles are exactly those of the literature", "[closed_forms]") {
  const int all = static_cast<int>(12 * some_costs().size());
  CHECK(check_bubbles(cases("naive")) == all);
  CHECK(check_bubbles(cases("gpipe")) == all);
  CHECK(check_bubbles(cases("1f1b")) == all);
  CHECK(check_bubbles(cases("interleaved", 2)) == all);
  CHECK(check_bubbles(cases("interleaved", 4)) == all);
  CHECK(check_bubbles(cases("zb-h1")) == 12 * 6);  // not where W is dearer than F
  CHECK(check_bubbles(cases("zb-v")) == 4 * 2);    // equal costs, and not m = p
}

TEST_CASE("bubbles in numbers, as the papers give them", "[closed_forms]") {
  // 1F1B: (p-1)/(m+p-1) of the step. ZB-H1: a third of the time. Interleaved: 1/v of it.
  const auto one = simulated({.name = "1f1b", .stages = 8, .micro_batches = 24}, {1, 1, 1});
  CHECK(one.makespan_s() == 3 * (24 + 7));
  CHECK(one.bubble_s() == 21);
  CHECK(simulated({.name = "zb-h1", .stages = 8, .micro_batches = 24}, {1, 1, 1}).bubble_s() == 7);
  CHECK(simulated({.name = "interleaved", .stages = 8, .micro_batches = 24, .chunks = 2}, {1, 1, 1})
            .bubble_s() == 10.5);
  CHECK(simulated({.name = "naive", .stages = 8, .micro_batches = 24}, {1, 1, 1}).makespan_s() ==
        3 * 24 * 8);
}

TEST_CASE("zb-v waits nowhere once the pipeline is filled", "[closed_forms]") {
  for (const int stages : {2, 4, 8, 16}) {
    for (const int micro_batches : {2 * stages - 1, 2 * stages, 4 * stages + 1}) {
      CAPTURE(stages, micro_batches);
      const auto summary =
          simulated({.name = "zb-v", .stages = stages, .micro_batches = micro_batches}, {2, 2, 2});
      CHECK(summary.waiting_s() == 0);
      for (int rank = 0; rank < stages; ++rank) {
        CHECK(summary.ranks[rank].begin_s == rank);
        CHECK(summary.ranks[rank].end_s == rank + 6 * micro_batches);
      }
    }
  }
  CHECK_FALSE(bubble_closed_form({.name = "zb-v", .stages = 4, .micro_batches = 6}, {1, 1, 1}));
  CHECK_FALSE(bubble_closed_form({.name = "zb-v", .stages = 4, .micro_batches = 8}, {1, 1, 2}));
}

TEST_CASE("the closed form of zb-h1 ends where the weight half is the dearest", "[closed_forms]") {
  const schedule::ScheduleRequest request{.name = "zb-h1", .stages = 4, .micro_batches = 8};
  CHECK_FALSE(bubble_closed_form(request, {1, 2, 1.25}));
  CHECK(simulated(request, {1, 2, 1.25}).bubble_s() > 3 * (1 + 2 - 1.25));
}

TEST_CASE("peaks of activations are exactly those of the literature", "[closed_forms]") {
  const auto name = GENERATE("naive", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v");
  const int most_chunks = name == std::string("interleaved") ? 4 : 0;
  const int least_chunks = most_chunks == 0 ? 0 : 2;
  for (int chunks = least_chunks; chunks <= most_chunks; ++chunks) {
    std::vector<schedule::ScheduleRequest> requests = cases(name, chunks);
    requests.push_back({.name = name, .stages = 1, .micro_batches = 3, .chunks = chunks});
    if (most_chunks == 0) {
      requests.push_back({.name = name, .stages = 6, .micro_batches = 2, .chunks = chunks});
    }
    for (const schedule::ScheduleRequest& request : requests) {
      const schedule::Schedule schedule = schedule::make_schedule(request);
      for (int rank = 0; rank < request.stages; ++rank) {
        const auto closed_form = peak_activations_closed_form(request, rank);
        if (closed_form) {
          INFO(name << " p " << request.stages << " m " << request.micro_batches << " v " << chunks
                    << " rank " << rank);
          CHECK(schedule.peak_live(rank) == *closed_form * schedule.chunks);
        }
      }
    }
  }
}

TEST_CASE("buffers are as many as the peak, but for chunks that peak at different times",
          "[closed_forms]") {
  for (const std::string name : {"naive", "gpipe", "1f1b", "zb-h1", "zb-v"}) {
    for (const schedule::ScheduleRequest& request : cases(name)) {
      const schedule::Schedule schedule = schedule::make_schedule(request);
      for (int rank = 0; rank < request.stages; ++rank) {
        int slots = 0;
        for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
          slots += schedule.slots(rank, chunk);
        }
        INFO(name << " p " << request.stages << " m " << request.micro_batches << " rank " << rank);
        CHECK(slots == schedule.peak_live(rank));
      }
    }
  }
}

TEST_CASE("interleaved keeps its bubble where micro-batches do not divide", "[closed_forms]") {
  for (int stages = 2; stages <= 6; ++stages) {
    for (int micro_batches = stages; micro_batches <= 4 * stages; ++micro_batches) {
      for (int chunks = 2; chunks <= 4; ++chunks) {
        check_bubbles({{.name = "interleaved",
                        .stages = stages,
                        .micro_batches = micro_batches,
                        .chunks = chunks}});
      }
    }
  }
}

}  // namespace
}  // namespace fourfold::plan
