// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "transport_check.hpp"

#include "check.hpp"

#include <fourfold/base/message.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
#include <set>

namespace fourfold::doctor {
namespace {

constexpr const char* oversubscribed =
    " (ranks share cores here, so this says little of the transport); look again with a core each";

std::vector<std::string> nodes_of(const Ranks& ranks, const LineSpeed& line) {
  std::vector<std::string> nodes;
  for (const int rank : line.ranks) {
    add_once(nodes, ranks.nodes[rank]);
  }
  return nodes;
}

std::string speed_text(const LineSpeed& line) {
  return fmt::format("{:.1f} us, {:.2f} GB/s", 1e6 * line.latency_s, line.bus_gb_s);
}

/// Slow lines of one axis, with what is to be thought of their nodes: a line on one node blames it;
/// one over several nodes blames nobody by itself.
void blame(const Ranks& ranks, const LineSpeed& line, double usual_gb_s, Check& check) {
  const std::vector<std::string> nodes = nodes_of(ranks, line);
  const std::string finding =
      fmt::format("ranks {} on {} reach {}, where {:.2f} GB/s are usual on this axis",
                  first_of(line.ranks, 4), first_of(nodes, 4), speed_text(line), usual_gb_s);
  if (!ranks.oversubscribed().empty()) {
    check.warn(finding + oversubscribed);
  } else if (nodes.size() == 1) {
    check.fail_nodes(nodes, finding +
                                " (its memory or its cores are busy or slow); leave the node "
                                "out, and have it looked at");
  } else {
    check.warn(finding + " (one of these nodes, or what is between them); see the row \"network\"");
  }
}

}  // namespace

std::vector<LineSpeed> better_of(std::vector<LineSpeed> a, std::span<const LineSpeed> b) {
  for (LineSpeed& line : a) {
    const auto other = std::ranges::find_if(b, [&](const LineSpeed& each) {
      return each.axis == line.axis && each.ranks == line.ranks;
    });
    if (other != b.end()) {
      line.latency_s = std::min(line.latency_s, other->latency_s);
      line.wrong_elements += other->wrong_elements;
      if (other->bytes > line.bytes ||
          (other->bytes == line.bytes && other->bus_gb_s > line.bus_gb_s)) {
        line.bytes = other->bytes;
        line.bus_gb_s = other->bus_gb_s;
      }
    }
  }
  return a;
}

std::vector<LinkSpeed> better_of(std::vector<LinkSpeed> a, std::span<const LinkSpeed> b) {
  for (LinkSpeed& link : a) {
    for (const LinkSpeed& other : b) {
      if (other.from == link.from && other.to == link.to) {
        link.gb_s = std::max(link.gb_s, other.gb_s);
      }
    }
  }
  return a;
}

std::vector<std::size_t> slow_lines(const Ranks& ranks, std::span<const LineSpeed> lines) {
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

std::vector<double> best_link_of_nodes(std::span<const LinkSpeed> links, std::size_t nodes) {
  std::vector<double> best(nodes, 0);
  for (const LinkSpeed& link : links) {
    for (const int end : {link.from, link.to}) {
      double& value = best.at(end);
      value = std::max(value, link.gb_s);
    }
  }
  return best;
}

std::vector<Check> transport_checks(const Ranks& ranks, std::span<const LineSpeed> lines) {
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

Check network_check(const Ranks& ranks, std::span<const LinkSpeed> links) {
  Check check("network");
  const std::vector<std::string> nodes = ranks.distinct_nodes();
  if (links.empty()) {
    check.say(nodes.size() == 1 ? "one node: nothing is sent" : "not measured");
    return check;
  }
  const std::vector<double> best = best_link_of_nodes(links, nodes.size());
  const std::size_t worst = std::ranges::min_element(best) - best.begin();
  check.say(
      fmt::format("{:.2f} GB/s from node to node (median of their best); slowest {} with "
                  "{:.2f}",
                  median(best), nodes[worst], best[worst]));
  for (const std::size_t i : slow_ones(best)) {
    const std::string finding = fmt::format(
        "{} exchanges at most {:.2f} GB/s with any other, the "
        "median is {:.2f}",
        nodes[i], best[i], median(best));
    if (!ranks.oversubscribed().empty()) {
      check.warn(finding + oversubscribed);
    } else {
      check.fail_nodes({nodes[i]},
                       finding + " (its adapter or cable); leave it out, and have it looked at");
    }
  }
  return check;
}

}  // namespace fourfold::doctor
