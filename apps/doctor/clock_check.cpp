// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "node_facts.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/comm/clock_offset.hpp>

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string_view>

namespace fourfold::doctor {
namespace {

constexpr double worth_a_word_s = 1;
/// Slurm's credentials and tickets of file systems begin to be refused.
constexpr double too_far_s = 60;

/// What is wrong with how this machine finds a host by name; empty: nothing.
std::string name_problem(const std::string& host, bool is_own) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  if (failure != 0) {
    return fmt::format("does not know {} ({})", host, ::gai_strerror(failure));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::array<char, NI_MAXHOST> number{};
  ::getnameinfo(found->ai_addr, found->ai_addrlen, number.data(), number.size(), nullptr, 0,
                NI_NUMERICHOST);
  const std::string_view address = number.data();
  const bool is_loopback = address == "::1" || address.starts_with("127.");
  return is_loopback && !is_own ? fmt::format("takes {} for itself (a loopback address)", host)
                                : "";
}

}  // namespace

void measure_clock(const std::vector<std::string>& hosts, const std::vector<std::string>& machines,
                   comm::Communicator& leaders, NodeFacts& own) {
  const std::size_t self = leaders.rank();
  own.clock_offset_s = comm::clock_offset_s(leaders, machines[self], unix_time_s);
  // The first two, where hangs are judged, and a neighbour.
  for (const std::size_t other : {std::size_t{0}, std::size_t{1}, self + 1}) {
    const std::size_t peer = other % hosts.size();
    const std::string problem = name_problem(hosts[peer], machines[peer] == machines[self]);
    own.name_problem = problem.empty() ? own.name_problem : problem;
  }
}

Check clock_check(const std::vector<NodeFacts>& nodes) {
  Check check("clocks");
  const double usual_s = median(each(nodes, &NodeFacts::clock_offset_s));
  double furthest_s = 0;
  for (const NodeFacts& one : nodes) {
    const double skew_s = one.clock_offset_s - usual_s;
    furthest_s = std::max(furthest_s, std::fabs(skew_s));
    if (std::fabs(skew_s) < worth_a_word_s) {
      continue;
    }
    const std::string finding = fmt::format("the clock of {} is {:.1f} s {} the others'", one.node,
                                            std::fabs(skew_s), skew_s > 0 ? "ahead of" : "behind");
    if (std::fabs(skew_s) > too_far_s && nodes.size() > 2) {
      check.fail_nodes({one.node}, finding +
                                       " (Slurm and file systems refuse what comes from another "
                                       "time); leave it out, and have its time service looked at");
    } else {
      check.warn(finding +
                 " (times in logs and the end of a job may be wrong by it); tell the "
                 "administrators");
    }
  }
  check.say(fmt::format("at most {:.1f} ms apart from the median of {}", 1e3 * furthest_s,
                        counted(nodes.size(), "node")));
  return check;
}

Check names_check(const std::vector<NodeFacts>& nodes) {
  Check check("host names");
  std::size_t problems = 0;
  for (const NodeFacts& one : nodes) {
    if (!one.name_problem.empty() && ++problems <= 4) {
      check.warn(
          fmt::format("{} {} (hangs are told over connections by name, and are not where it "
                      "fails) have /etc/hosts or DNS put right",
                      one.node, one.name_problem));
    }
  }
  check.say(problems == 0 ? "nodes find each other by name"
                          : fmt::format("{} node(s); do not find others by name", problems));
  return check;
}

}  // namespace fourfold::doctor
