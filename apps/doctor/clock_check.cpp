// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0

#include "check.hpp"
#include "records.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/comm/clock_offset.hpp>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace fourfold::doctor {
namespace {

constexpr double worth_a_word_s = 1;
/// Slurm's credentials and tickets of file systems begin to be refused.
constexpr double too_far_s = 60;

struct Address {
  std::string problem;
  bool is_loopback = false;
};

Address resolve(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  if (failure != 0) {
    return {.problem = ::gai_strerror(failure)};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  Address address;
  if (found->ai_family == AF_INET) {
    const auto* const v4 = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
    address.is_loopback = ntohl(v4->sin_addr.s_addr) >> 24U == 127U;
  } else if (found->ai_family == AF_INET6) {
    const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(found->ai_addr);
    address.is_loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) != 0;
  }
  return address;
}

}  // namespace

std::vector<ClockFacts> measure_clocks(const std::vector<std::string>& hosts,
                                       const std::vector<std::string>& machines,
                                       comm::Communicator& leaders) {
  const std::size_t self = leaders.rank();
  ClockFacts own;
  own.offset_s = comm::clock_offset_s(leaders, machines[self], unix_time_s);
  // The first two, where hangs are judged, and a neighbour.
  for (const std::size_t other : {std::size_t{0}, std::size_t{1}, self + 1}) {
    const std::size_t peer = other % hosts.size();
    const Address address = resolve(hosts[peer]);
    if (!address.problem.empty()) {
      own.name_problem = fmt::format("does not know {} ({})", hosts[peer], address.problem);
    } else if (address.is_loopback && machines[peer] != machines[self]) {
      own.name_problem = fmt::format("takes {} for itself (a loopback address)", hosts[peer]);
    }
  }
  return gather(leaders, own);
}

Check clock_check(const Ranks& ranks, std::span<const ClockFacts> facts) {
  Check check("clocks");
  std::vector<double> offsets_s;
  offsets_s.reserve(facts.size());
  for (const ClockFacts& each : facts) {
    offsets_s.push_back(each.offset_s);
  }
  const double usual_s = median(offsets_s);
  const std::vector<int> firsts = ranks.first_ranks();
  double furthest_s = 0;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const double skew_s = offsets_s[i] - usual_s;
    furthest_s = std::max(furthest_s, std::fabs(skew_s));
    if (std::fabs(skew_s) < worth_a_word_s) {
      continue;
    }
    const std::string& node = ranks.nodes[firsts[i]];
    const std::string finding = fmt::format("the clock of {} is {:.1f} s {} the others'", node,
                                            std::fabs(skew_s), skew_s > 0 ? "before" : "after");
    if (std::fabs(skew_s) > too_far_s && facts.size() > 2) {
      check.fail_nodes({node}, finding +
                                   " (Slurm and file systems refuse what comes from another "
                                   "time); leave it out, and have its time service looked at");
    } else {
      check.warn(finding +
                 " (times in logs and the end of a job may be wrong by it); tell the "
                 "administrators");
    }
  }
  check.say(fmt::format("at most {:.1f} ms apart from the median of {} node{}", 1e3 * furthest_s,
                        facts.size(), facts.size() == 1 ? "" : "s"));
  return check;
}

Check names_check(const Ranks& ranks, std::span<const ClockFacts> facts) {
  Check check("host names");
  const std::vector<int> firsts = ranks.first_ranks();
  std::size_t problems = 0;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (!facts[i].name_problem.empty() && ++problems <= 4) {
      check.warn(
          fmt::format("{} {} (hangs are told over connections by name, and are not where it "
                      "fails) have /etc/hosts or DNS put right",
                      ranks.nodes[firsts[i]], facts[i].name_problem));
    }
  }
  check.say(problems == 0 ? "nodes find each other by name"
                          : fmt::format("{} node(s); do not find others by name", problems));
  return check;
}

}  // namespace fourfold::doctor
