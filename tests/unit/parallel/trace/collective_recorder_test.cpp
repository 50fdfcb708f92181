// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/clock.hpp>
#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/harness/on_ranks.hpp>
#include <fourfold/harness/shared_vector.hpp>
#include <fourfold/parallel/collective_recorder.hpp>
#include <fourfold/schedule/timeline.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fourfold::parallel {
namespace {

using comm::Communicator;
using harness::Findings;
using harness::on_ranks;
using schedule::CollectiveFacts;
using schedule::SpanKind;
using schedule::TimelineSpan;

comm::Work sum(RecordedCommunicator& group, harness::SharedVector<float>& values) {
  return group.all_reduce({values.data(), {std::ssize(values)}}, comm::ReduceOp::sum, {});
}

CollectiveFacts sum_of(const std::string& name, std::int64_t bytes) {
  return facts_of({comm::Operation::all_reduce, bytes}, name, 2);
}

/// An operation in the queue of a device: its end is known, whoever looks.
class Queued : public comm::Work::Operation {
 public:
  explicit Queued(device::StreamRef lane) : lane_(lane) {}
  void wait(device::StreamRef /*stream*/) override {}
  bool test() override { return false; }
  bool mark_end(device::TimedEvent& end) override {
    end.record(lane_);
    return true;
  }

 private:
  device::StreamRef lane_;
};

TEST_CASE("collectives are passed on, and noted while somebody wants them",
          "[collective_recorder]") {
  on_ranks([](Communicator& world, Findings& findings) {
    RecordedCommunicator group(world.split(0, world.rank(), "group"));
    CollectiveRecorder recorder;
    const device::StreamClock clock({});
    harness::SharedVector<float> values(1000, 1.0F);
    sum(group, values).wait({});
    group.record_into(&recorder);
    harness::SharedVector<float> gathered(3 * static_cast<std::size_t>(world.size()));
    std::vector<std::int64_t> counts;
    for (int rank = 0; rank < world.size(); ++rank) {
      counts.push_back(3);
    }
    const double before_s = steady_time_s();
    comm::Work first = sum(group, values);
    comm::Work second = group.all_gather({values.data(), {3}},
                                         {gathered.data(), {std::ssize(gathered)}}, counts, {});
    harness::SharedVector<float> number(1, 1.0F);  // says nothing of a bandwidth
    sum(group, number).wait({});
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
    const CollectiveFacts reduced =
        facts_of({comm::Operation::all_reduce, 4000}, "group", world.size());
    findings.check(spans[0].collective == reduced, "facts");
    findings.check(spans[1].collective->bytes == 12 * world.size(), "bytes of the larger buffer");
    for (const TimelineSpan& span : spans) {
      findings.check(span.rank == 7 && span.kind == SpanKind::communication, "whose and what");
      findings.check(before_s <= span.begin_s + 1e-3 && span.begin_s <= span.end_s, "times");
    }
  });
}

TEST_CASE("a message is noted where it arrives, over a communicator that is borrowed",
          "[collective_recorder]") {
  on_ranks([](Communicator& world, Findings& findings) {
    if (world.size() != 2) {
      return;
    }
    RecordedCommunicator group(world);
    CollectiveRecorder recorder;
    const device::StreamClock clock({});
    group.record_into(&recorder);
    const int other = 1 - world.rank();
    group.expect_messages(std::vector<comm::MessageRoute>{{0, 1, 3}, {1, 0, 3}});
    harness::SharedVector<float> leaves(100, static_cast<float>(world.rank()));
    harness::SharedVector<float> arrives(100, -1.0F);
    comm::Work arrival = group.recv({arrives.data(), {100}}, other, 3, {});
    comm::Work departure = group.send({leaves.data(), {100}}, other, 3, {});
    arrival.wait({});
    departure.wait({});
    findings.check(arrives[99] == static_cast<float>(other), "the message");
    const std::vector<TimelineSpan> spans = recorder.take_spans(0, clock);
    const CollectiveFacts message = facts_of({comm::Operation::recv, 400}, world.name(), 2);
    findings.check(spans.size() == 1 && spans[0].collective == message, "one was noted");
  });
}

TEST_CASE("what outlasts the recording of its step is in none", "[collective_recorder]") {
  CollectiveRecorder recorder;
  const device::StreamClock clock({});
  const std::size_t late = recorder.begin(sum_of("late", 1), {});
  const std::size_t in_time = recorder.begin(sum_of("in time", 2'500'000), {});
  recorder.end(in_time, {});
  const std::vector<TimelineSpan> spans = recorder.take_spans(0, clock);
  REQUIRE(spans.size() == 1);
  CHECK(spans[0].name == "all_reduce in time, 2.50 MB");

  recorder.begin_step();
  const std::size_t next = recorder.begin(sum_of("next", 1), {});
  recorder.end(late, {});
  CHECK(recorder.take_spans(0, clock).empty());
  recorder.end(next, {});
  CHECK(recorder.take_spans(0, clock).at(0).name == "all_reduce next, 0.00 MB");
}

#if FOURFOLD_CONTRACTS
TEST_CASE("numbers that nobody was given are contract violations", "[collective_recorder]") {
  CollectiveRecorder recorder;
  comm::Work work;
  const std::size_t first = recorder.begin(sum_of("first", 1), {});
  CHECK_THROWS_AS(recorder.end(first + 1, {}), ContractViolation);
  CHECK_THROWS_AS(recorder.posted(first + 1, work), ContractViolation);
  recorder.begin_step();
  const std::size_t next = recorder.begin(sum_of("next", 1), {});
  CHECK_THROWS_AS(recorder.end(next + 1, {}), ContractViolation);  // though there is room for it
  CHECK_THROWS_AS(recorder.posted(first, work), ContractViolation);
  CHECK_NOTHROW(recorder.end(first, {}));
}
#endif

TEST_CASE("what is taken is not taken again, and what ends later comes later",
          "[collective_recorder]") {
  CollectiveRecorder recorder;
  const device::StreamClock clock({});
  const std::size_t first = recorder.begin(sum_of("first", 1), {});
  const std::size_t second = recorder.begin(sum_of("second", 1), {});
  recorder.end(second, {});
  CHECK(recorder.take_spans(0, clock).size() == 1);
  recorder.end(first, {});
  const std::vector<TimelineSpan> late = recorder.take_spans(0, clock);
  REQUIRE(late.size() == 1);
  CHECK(late[0].name == "all_reduce first, 0.00 MB");
}

TEST_CASE("where a device knows the end, nobody has to look and nothing behind it counts",
          "[collective_recorder]") {
  const device::Stream lane;
  const device::StreamClock clock(lane);
  const device::Buffer data(4096);
  CollectiveRecorder recorder;
  const auto post = [&](const std::string& name) {
    const std::size_t number = recorder.begin(sum_of(name, 4096), lane);
    device::zero(data.data(), data.bytes(), lane);
    comm::Work work(std::make_unique<Queued>(lane));
    recorder.posted(number, work);
    for (int i = 0; i < 9; ++i) {
      device::zero(data.data(), data.bytes(), lane);
    }
    return number;
  };
  const std::size_t first = post("first");
  device::TimedEvent after_first;
  after_first.record(lane);
  // Under way, and left alone; where the host is the device it is over already.
  std::vector<TimelineSpan> spans = recorder.take_spans(0, clock);
  lane.ref().synchronize();
  for (const TimelineSpan& late : recorder.take_spans(0, clock)) {
    spans.push_back(late);
  }
  REQUIRE(spans.size() == 1);
  CHECK(spans[0].begin_s <= spans[0].end_s);
  CHECK(spans[0].end_s <= clock.time_s(after_first));
  recorder.end(first, lane);  // no news
  CHECK(recorder.take_spans(0, clock).empty());

  const std::size_t second = post("second");
  device::TimedEvent after_second;
  after_second.record(lane);
  recorder.end(second, lane);  // a stream waits for it: it belongs to this step
  spans = recorder.take_spans(0, clock);
  REQUIRE(spans.size() == 1);
  CHECK(spans[0].end_s <= clock.time_s(after_second));
}

TEST_CASE("a collective's bus bandwidth is that of fourfold bench comm", "[collective_facts]") {
  const CollectiveFacts sum = facts_of({comm::Operation::all_reduce, 1'000'000'000}, "dp", 4);
  CHECK(bus_gb_s(sum, 0.5) == 3);  // 2 GB/s x 2 x 3/4
  const CollectiveFacts gather = facts_of({comm::Operation::all_gather, 1'000'000'000}, "dp", 4);
  CHECK(bus_gb_s(gather, 0.5) == 1.5);
  CHECK(bus_gb_s(gather, 0) == 0);
}

}  // namespace
}  // namespace fourfold::parallel
