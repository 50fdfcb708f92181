// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/harness/on_ranks.hpp>
#include <fourfold/harness/shared_vector.hpp>
#include <fourfold/parallel/collective_recorder.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::parallel {
namespace {

using comm::Communicator;
using harness::Findings;
using harness::on_ranks;

comm::Work sum(RecordedCommunicator& group, harness::SharedVector<float>& values) {
  return group.all_reduce({values.data(), {std::ssize(values)}}, comm::ReduceOp::sum, {});
}

TEST_CASE("collectives are passed on, and noted while somebody wants them",
          "[collective_recorder]") {
  on_ranks([](Communicator& world, Findings& findings) {
    RecordedCommunicator group(world.split(0, world.rank(), "group"));
    CollectiveRecorder recorder;
    const device::StreamClock clock({});
    harness::SharedVector<float> values(1000, 1.0F);
    sum(group, values).wait({});
    group.record_into(&recorder);
    harness::SharedVector<float> gathered(static_cast<std::size_t>(world.size()));
    std::vector<std::int64_t> counts;
    for (int rank = 0; rank < world.size(); ++rank) {
      counts.push_back(1);
    }
    const double before_s = device::clock_s();
    comm::Work first = sum(group, values);
    comm::Work second = group.all_gather({values.data(), {1}},
                                         {gathered.data(), {std::ssize(gathered)}}, counts, {});
    first.wait({});
    second.wait({});
    group.record_into(nullptr);
    sum(group, values).wait({});

    const float ranks = static_cast<float>(world.size());
    findings.check(values[999] == ranks * ranks * ranks, "sums");
    const std::vector<TimelineSpan> spans = recorder.take_spans(7, clock);
    findings.check(spans.size() == 2, "two were noted");
    findings.check(spans[0].name == "all_reduce group, 0.00 MB", spans[0].name);
    findings.check(spans[1].name.starts_with("all_gather group"), spans[1].name);
    for (const TimelineSpan& span : spans) {
      findings.check(span.rank == 7 && span.kind == SpanKind::communication, "whose and what");
      findings.check(before_s <= span.begin_s + 1e-3 && span.begin_s <= span.end_s, "times");
    }
  });
}

TEST_CASE("what outlasts the recording of its step is in none", "[collective_recorder]") {
  CollectiveRecorder recorder;
  const device::StreamClock clock({});
  const std::size_t late = recorder.begin("late", 1, {});
  const std::size_t in_time = recorder.begin("in time", 2'500'000, {});
  recorder.end(in_time, {});
  const std::vector<TimelineSpan> spans = recorder.take_spans(0, clock);
  REQUIRE(spans.size() == 1);
  CHECK(spans[0].name == "in time, 2.50 MB");

  recorder.begin_step();
  const std::size_t next = recorder.begin("next", 1, {});
  recorder.end(late, {});
  CHECK(recorder.take_spans(0, clock).empty());
  recorder.end(next, {});
  CHECK(recorder.take_spans(0, clock).at(0).name == "next, 0.00 MB");
}

TEST_CASE("what is taken is not taken again, and what ends later comes later",
          "[collective_recorder]") {
  CollectiveRecorder recorder;
  const device::StreamClock clock({});
  const std::size_t first = recorder.begin("first", 1, {});
  const std::size_t second = recorder.begin("second", 1, {});
  recorder.end(second, {});
  CHECK(recorder.take_spans(0, clock).size() == 1);
  recorder.end(first, {});
  const std::vector<TimelineSpan> late = recorder.take_spans(0, clock);
  REQUIRE(late.size() == 1);
  CHECK(late[0].name == "first, 0.00 MB");
}

}  // namespace
}  // namespace fourfold::parallel
