// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <fourfold/device/timed_event.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace fourfold::benchmarks {
namespace {

constexpr double most_runs = 256;  // of a group: queues of launches are not endless

struct Group {
  device::TimedEvent begin;
  device::TimedEvent end;
};

void enqueue(const KernelCase& one, int runs, Group& group, device::StreamRef stream) {
  group.begin.record(stream);
  for (int run = 0; run < runs; ++run) {
    one.run(run % one.sets, stream);
  }
  group.end.record(stream);
}

}  // namespace

Measurement measure(const KernelCase& one, const Repetition& repetition, device::StreamRef stream) {
  const device::StreamClock clock(stream);
  const auto seconds = [&](const Group& group) {
    return clock.time_s(group.end) - clock.time_s(group.begin);
  };
  // The first runs size scratch and choose algorithms.
  int runs = std::max(one.sets, 2);
  std::vector<Group> groups(static_cast<std::size_t>(repetition.groups));
  for (int round = 0; round < 2; ++round) {
    enqueue(one, runs, groups.front(), stream);
    stream.synchronize();
  }
  const double one_s = std::max(seconds(groups.front()) / runs, 1e-9);
  const double wanted = std::min(std::ceil(repetition.group_s / one_s), most_runs);
  runs = std::max(runs, static_cast<int>(wanted));
  for (Group& group : groups) {
    enqueue(one, runs, group, stream);
  }
  std::vector<double> run_s;
  for (const Group& group : groups) {
    run_s.push_back(seconds(group) / runs);
  }
  const auto middle = run_s.begin() + static_cast<std::ptrdiff_t>(run_s.size() / 2);
  std::nth_element(run_s.begin(), middle, run_s.end());
  return {*middle, one.work / *middle};
}

}  // namespace fourfold::benchmarks
