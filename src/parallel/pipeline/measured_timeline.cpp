// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/comm/flight_recorder.hpp>
#include <fourfold/parallel/action_recorder.hpp>
#include <fourfold/parallel/collective_recorder.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::parallel {

namespace {

using schedule::CollectiveFacts;
using schedule::SpanKind;
using schedule::TimelineSpan;

/// A line per span: its kind and its name; of a collective what its name is made of.
std::string lines_of(std::span<const TimelineSpan> spans) {
  std::string text;
  for (const TimelineSpan& span : spans) {
    if (span.collective) {
      const CollectiveFacts& facts = *span.collective;
      text += fmt::format("c{} {} {} {}\n", facts.operation, facts.ranks, facts.bytes,
                          facts.communicator);
    } else {
      text += fmt::format("{}{}\n", span.kind == SpanKind::step ? 's' : 'o', span.name);
    }
  }
  return text;
}

CollectiveFacts facts_from(const std::string& line) {
  std::istringstream text(line);
  std::string operation;
  int ranks = 1;
  comm::Call call;
  text >> operation >> ranks >> call.bytes;
  text.get();
  std::string communicator;
  std::getline(text, communicator);
  call.operation = value_named<comm::Operation>(operation).value_or(comm::Operation::all_reduce);
  return facts_of(call, std::move(communicator), ranks);
}

/// The spans of a rank, without times yet.
std::vector<TimelineSpan> spans_from(const std::string& lines, int rank) {
  std::vector<TimelineSpan> spans;
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    TimelineSpan span{.rank = rank,
                      .name = line.substr(1),
                      .kind = line[0] == 's' ? SpanKind::step : SpanKind::communication};
    if (line[0] == 'c') {
      span.collective = facts_from(span.name);
      span.name = str(*span.collective);
    }
    spans.push_back(std::move(span));
  }
  return spans;
}

/// Pairs of begin and end of all actions and spans of all ranks, rank after rank.
std::vector<double> gather_pairs(std::span<const std::int64_t> counts,
                                 std::span<const double> actions_s,
                                 std::span<const TimelineSpan> spans, double clock_offset_s,
                                 comm::Communicator& pp) {
  std::vector<double> own(actions_s.begin(), actions_s.end());
  for (const TimelineSpan& span : spans) {
    own.push_back(span.begin_s);
    own.push_back(span.end_s);
  }
  for (double& time_s : own) {
    time_s -= clock_offset_s;
  }
  std::vector<double> all(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  pp.host()
      .all_gather(ConstTensorView(own.data(), DType::f64, {std::ssize(own)}),
                  TensorView(all.data(), DType::f64, {std::ssize(all)}), counts, {})
      .wait({});
  return all;
}

}  // namespace

schedule::Timeline gather_timeline(const schedule::Schedule& schedule,
                                   std::span<const double> actions_s,
                                   std::span<const TimelineSpan> spans, double clock_offset_s,
                                   comm::Communicator& pp) {
  const std::size_t rank = pp.rank();
  FOURFOLD_EXPECT(actions_s.size() == 2 * schedule.ranks[rank].size());
  const std::vector<std::string> lines = comm::all_gather_text(pp, lines_of(spans));
  std::vector<std::vector<TimelineSpan>> of_ranks;
  std::vector<std::int64_t> counts;
  for (int from = 0; from < schedule.stages; ++from) {
    const std::size_t place = from;
    of_ranks.push_back(spans_from(lines[place], from));
    counts.push_back(2 * (std::ssize(schedule.ranks[place]) + std::ssize(of_ranks.back())));
  }
  const std::vector<double> all = gather_pairs(counts, actions_s, spans, clock_offset_s, pp);
  schedule::Timeline timeline = schedule::empty_timeline(schedule);
  std::size_t next = 0;
  const auto take = [&] { return all[next++]; };
  for (int from = 0; from < schedule.stages; ++from) {
    for (const schedule::Action& action : schedule.ranks[from]) {
      const double begin_s = take();
      timeline.events.push_back({from, action, begin_s, take()});
    }
    for (TimelineSpan& span : of_ranks[from]) {
      span.begin_s = take();
      span.end_s = take();
      timeline.spans.push_back(std::move(span));
    }
  }
  return timeline;
}

}  // namespace fourfold::parallel
