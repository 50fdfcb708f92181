// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "records.hpp"
#include "transport_check.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/exchange/collective_benchmark.hpp>
#include <fourfold/exchange/measure.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <ranges>

namespace fourfold::doctor {
namespace {

constexpr std::int64_t largest_bytes = std::int64_t{4} << 20;
constexpr int growth = 16;  ///< from one size to the next
constexpr std::int64_t latency_bytes = std::int64_t{16} << 10;
/// Calls in each of exchange::measure()'s five rounds: a mean of a few, of which it takes the
/// median. Not as many as some time allows: where ranks share cores the first call says little of
/// the next.
constexpr int small_calls = 20;
constexpr int large_calls = 3;
constexpr int rounds = 5;

int calls_of(std::int64_t bytes) {
  return bytes < latency_bytes ? small_calls : large_calls;
}
constexpr int most_distances = 6;
constexpr int link_elements = 1 << 20;

/// One size on all lines at the same time; each takes its own. @return seconds of a call
double measure_size(exchange::Operation operation, std::int64_t bytes, comm::Communicator& line,
                    comm::Communicator& world, LineSpeed& speed) {
  const exchange::Extent extent = exchange::extent_of(operation, bytes, 4, line.size());
  exchange::CollectiveBenchmark collective_benchmark(operation, extent, DType::f32, line);
  speed.wrong_elements +=
      comm::all_reduce_scalar(line, collective_benchmark.wrong_elements(), comm::ReduceOp::sum);
  world.barrier();
  const exchange::Pace pace{.warmup = 2, .iterations = calls_of(bytes)};
  const double call_s = exchange::measure(collective_benchmark, nullptr, line, pace).call_s;
  speed.latency_s = speed.bytes == 0 ? call_s : speed.latency_s;
  speed.bytes = extent.bytes;
  speed.bus_gb_s =
      exchange::algorithm_gb_s(extent, call_s) * exchange::bus_factor(operation, line.size());
  return call_s;
}

LineSpeed measure_line(const std::string& axis, comm::Communicator& line, comm::Communicator& world,
                       double seconds) {
  const exchange::Operation operation =
      axis == "pp" ? exchange::Operation::send_recv : exchange::Operation::all_reduce;
  LineSpeed speed{.axis = axis, .ranks = {}};
  const double end_s = steady_time_s() + seconds;
  for (std::int64_t bytes = 4; bytes <= largest_bytes; bytes *= growth) {
    const double call_s = measure_size(operation, bytes, line, world, speed);
    // All lines go on or none does: the slowest decides. Time grows with the size when it is large.
    const double next_call_s = call_s * (bytes < latency_bytes ? 2 : growth);
    const bool has_time = steady_time_s() + rounds * calls_of(bytes * growth) * next_call_s < end_s;
    if (!holds_on_all(world, has_time)) {
      break;
    }
  }
  return speed;
}

/// The lists of all ranks, one after the other.
template <class Record>
std::vector<Record> joined(const std::vector<std::vector<Record>>& lists) {
  const auto records = lists | std::views::join;
  return {records.begin(), records.end()};
}

}  // namespace

std::vector<LineSpeed> measure_lines(comm::Mesh& mesh, bool is_world, double seconds) {
  std::vector<LineSpeed> own;
  int measured = 0;
  for (const comm::Axis axis : comm::all_axes) {
    measured += mesh.shape()[axis] > 1 ? 1 : 0;
  }
  for (const comm::Axis axis : comm::all_axes | std::views::reverse) {
    comm::Communicator& line = mesh.axis(axis);
    if (line.size() == 1) {
      continue;
    }
    const std::string name(is_world ? "world" : comm::name(axis));
    LineSpeed speed = measure_line(name, line, mesh.world(), seconds / measured);
    for (const std::string& rank :
         comm::all_gather_text(line, std::to_string(mesh.world().rank()))) {
      speed.ranks.push_back(std::stoi(rank));
    }
    if (line.rank() == 0) {
      own.push_back(std::move(speed));
    }
  }
  std::vector<LineSpeed> all = joined(gather(mesh.world(), own));
  std::ranges::stable_sort(all, {}, &LineSpeed::axis);
  return all;
}

std::vector<LinkSpeed> measure_links(comm::Communicator& leaders, double seconds) {
  const int size = leaders.size();
  const device::Tensor out(DType::f32, {link_elements});
  const device::Tensor in(DType::f32, {link_elements});
  std::map<int, LinkSpeed> best;  // by sender
  const double end_s = steady_time_s() + seconds;
  bool has_time = size > 1;
  for (int round = 0; has_time; ++round) {
    int distance = 1;
    for (int i = round % most_distances; i > 0; --i) {
      distance = distance * 2 < size ? distance * 2 : 1;
    }
    const int to = (leaders.rank() + distance) % size;
    const int from = (leaders.rank() + size - distance) % size;
    leaders.barrier();
    const double start_s = steady_time_s();
    comm::Work received = leaders.recv(in, from, 0, {});
    comm::Work sent = leaders.send(out, to, 0, {});
    received.wait({});
    const double rate = link_elements * 4e-9 / (steady_time_s() - start_s);
    sent.wait({});
    LinkSpeed& link = best.try_emplace(from, LinkSpeed{from, leaders.rank(), 0}).first->second;
    link.gb_s = std::max(link.gb_s, rate);
    const bool goes_on = round + 1 < most_distances || steady_time_s() < end_s;
    has_time = round + 1 < 3 * most_distances && holds_on_all(leaders, goes_on);
  }
  return joined(gather(leaders, each(best, &std::pair<const int, LinkSpeed>::second)));
}

}  // namespace fourfold::doctor
