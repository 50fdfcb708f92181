// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "transport.hpp"

#include "records.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/base/contract.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/exchange/collective_benchmark.hpp>
#include <fourfold/exchange/measure.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
#include <utility>

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
  speed.latency_us = speed.bytes == 0 ? 1e6 * call_s : speed.latency_us;
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

std::vector<std::string> nodes_of(const Ranks& ranks, const LineSpeed& line) {
  std::vector<std::string> nodes;
  for (const int rank : line.ranks) {
    add_once(nodes, ranks[rank].node);
  }
  return nodes;
}

std::string speed_text(const LineSpeed& line) {
  return fmt::format("{:.1f} us, {:.2f} GB/s", line.latency_us, line.bus_gb_s);
}

/// Slow lines of one axis, with what is to be thought of their nodes: a line on one node blames it;
/// one over several nodes blames nobody by itself.
void blame(const Ranks& ranks, const LineSpeed& line, double usual_gb_s, Check& check) {
  const std::vector<std::string> nodes = nodes_of(ranks, line);
  const std::string finding =
      fmt::format("ranks {} on {} reach {}, where {:.2f} GB/s are usual on this axis",
                  first_of(line.ranks, 4), first_of(nodes, 4), speed_text(line), usual_gb_s);
  if (!oversubscribed(ranks).empty()) {
    check.warn(finding + no_word_of_transport);
  } else if (nodes.size() == 1) {
    check.fail_nodes(nodes, finding +
                                " (its memory or its cores are busy or slow); leave the node "
                                "out, and have it looked at");
  } else {
    check.warn(finding + " (one of these nodes, or what is between them); see the row \"network\"");
  }
}

}  // namespace

std::vector<LineSpeed> measure_lines(comm::Mesh& mesh, bool is_world, double seconds) {
  std::vector<LineSpeed> own;
  const auto measured = std::ranges::count_if(
      comm::all_axes, [&](comm::Axis axis) { return mesh.shape()[axis] > 1; });
  for (const comm::Axis axis : comm::all_axes | std::views::reverse) {
    comm::Communicator& line = mesh.axis(axis);
    if (line.size() == 1) {
      continue;
    }
    const std::string name(is_world ? "world" : comm::name(axis));
    LineSpeed speed =
        measure_line(name, line, mesh.world(), seconds / static_cast<double>(measured));
    for (const std::string& rank :
         comm::all_gather_text(line, std::to_string(mesh.world().rank()))) {
      speed.ranks.push_back(std::stoi(rank));
    }
    if (line.rank() == 0) {
      own.push_back(std::move(speed));
    }
  }
  const auto of_ranks = gather(mesh.world(), own);
  const auto joined = of_ranks | std::views::join;
  std::vector<LineSpeed> all(joined.begin(), joined.end());
  std::ranges::stable_sort(all, {}, &LineSpeed::axis);
  return all;
}

std::vector<LineSpeed> better_of(std::vector<LineSpeed> a, const std::vector<LineSpeed>& b) {
  FOURFOLD_EXPECT(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i].latency_us = std::min(a[i].latency_us, b[i].latency_us);
    a[i].wrong_elements += b[i].wrong_elements;
    if (std::pair(b[i].bytes, b[i].bus_gb_s) > std::pair(a[i].bytes, a[i].bus_gb_s)) {
      a[i].bytes = b[i].bytes;
      a[i].bus_gb_s = b[i].bus_gb_s;
    }
  }
  return a;
}

std::vector<std::size_t> slow_lines(const Ranks& ranks, const std::vector<LineSpeed>& lines) {
  std::map<std::pair<std::string, std::size_t>, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    alike[{lines[i].axis, nodes_of(ranks, lines[i]).size()}].push_back(i);
  }
  std::vector<std::size_t> slow;
  for (const auto& [kind, indices] : alike) {
    const auto rate = [&](std::size_t i) { return lines[i].bus_gb_s; };
    for (const std::size_t i : slow_ones(each(indices, rate))) {
      slow.push_back(indices[i]);
    }
  }
  std::ranges::sort(slow);
  return slow;
}

std::vector<Check> transport_checks(const Ranks& ranks, const std::vector<LineSpeed>& lines) {
  std::vector<Check> checks;
  if (lines.empty()) {
    checks.emplace_back("transport").say("one rank: nothing is sent");
  }
  const std::vector<std::size_t> slow = slow_lines(ranks, lines);
  std::vector<std::string_view> axes;
  std::ranges::transform(comm::all_axes | std::views::reverse, std::back_inserter(axes),
                         [](comm::Axis axis) { return name(axis); });
  axes.emplace_back("world");
  for (const std::string_view axis : axes) {
    std::vector<std::size_t> own;
    std::vector<double> rates;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].axis == axis) {
        own.push_back(i);
        rates.push_back(lines[i].bus_gb_s);
      }
    }
    if (own.empty()) {
      continue;
    }
    Check& check = checks.emplace_back(fmt::format("transport {}", axis));
    const LineSpeed& slowest = lines[own[std::ranges::min_element(rates) - rates.begin()]];
    check.say(fmt::format(
        "{} group{} of {}, {} ({} bytes){}", own.size(), own.size() == 1 ? "" : "s at once",
        slowest.ranks.size(), speed_text(slowest), slowest.bytes,
        own.size() == 1 ? "" : " in the slowest, ranks " + first_of(slowest.ranks, 4)));
    for (const std::size_t i : own) {
      if (lines[i].wrong_elements > 0) {
        check.fail(
            format_message("ranks {} got {} wrong elements (the transport or memory damages "
                           "data) have {} looked at, and use no result of theirs",
                           first_of(lines[i].ranks, 4), lines[i].wrong_elements,
                           first_of(nodes_of(ranks, lines[i]), 4)));
      }
      if (std::ranges::count(slow, i) > 0) {
        blame(ranks, lines[i], median(rates), check);
      }
    }
  }
  return checks;
}

}  // namespace fourfold::doctor
